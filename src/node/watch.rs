//! The watch of the own Node.
//!
//! Written here rather than taken from kube-runtime, whose watcher reconnects without any wait after a clean end, does
//! not fall back where streaming lists are refused, asks for `resourceVersion=0` (on a server that lags, the past),
//! and has a backoff that cannot be reset from outside.

use std::time::Duration;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ListMeta;
use kube::core::params::{ListParams, WatchParams};
use kube::core::{WatchEvent, request};
use serde::Deserialize;
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, sleep, timeout};

use super::view::NodeView;
use super::{NODES, valid};
use crate::api::{ApiError, ApiServer, Lines};
use crate::backoff::Backoff;

/// How long the server should keep a watch open. Shorter than its own choice of up to an hour costs requests, longer
/// delays the fallback for a connection that neither PING nor keep-alive shows dead.
const WATCH_SECONDS: u32 = 570;
/// What the server may be late with the end.
const WATCH_GRACE: Duration = Duration::from_secs(30);
const BACKOFF_BASE: Duration = Duration::from_millis(500);
const BACKOFF_CAP: Duration = Duration::from_secs(30);
/// The cap while a taint waits for nothing but the API server.
const URGENT_BACKOFF_CAP: Duration = Duration::from_secs(5);
/// A watch that lived so long was a good one: the next failure starts the backoff afresh.
const GOOD_WATCH: Duration = Duration::from_secs(10);

/// Annotation of the bookmark that ends the initial events (`metav1.InitialEventsAnnotationKey`).
const INITIAL_EVENTS_END: &str = "k8s.io/initial-events-end";

/// What the watch tells.
#[derive(Debug)]
pub enum WatchNews {
    /// The Node as it was at some time; it may be older than what is known already.
    Node(NodeView),
    /// The Node with this uid was deleted; without a uid, there is no such Node.
    Gone(Option<String>),
    /// The watch is up and has told the state as it is.
    Synced,
    /// It ended; why, unless the server ended it in good order.
    Ended(Option<ApiError>),
}

/// How the server is asked for the state of before the watch.
#[derive(Clone, Copy, PartialEq)]
enum Initial {
    /// In the watch itself (KEP-3157).
    Streamed,
    /// By a list. Streaming lists are off by default in 1.30, 1.31 and 1.33, and may be switched off in any.
    Listed,
}

/// Watches the Node `name` for ever. `urgent` says whether a taint waits for nothing but the API server: turning true,
/// it ends a wait and starts the backoff afresh. Returns when nobody listens to `news` any more.
pub async fn run(
    api: &ApiServer,
    name: &str,
    news: mpsc::Sender<WatchNews>,
    mut urgent: watch::Receiver<bool>,
) {
    let mut watch = NodeWatch {
        api,
        name,
        news,
        initial: Initial::Streamed,
        resume: None,
    };
    let mut backoff = Backoff::new(BACKOFF_BASE);
    loop {
        let started = Instant::now();
        let end = timeout(
            Duration::from_secs(WATCH_SECONDS.into()) + WATCH_GRACE,
            watch.session(),
        )
        .await;
        let error = match end {
            Ok(Ok(())) => None,
            Err(_) => Some(ApiError::Transport("the watch outlived its time".into())),
            Ok(Err(error)) => Some(error),
        };
        if started.elapsed() > GOOD_WATCH {
            backoff.reset();
        }
        let asked = error
            .as_ref()
            .and_then(ApiError::retry_after)
            .unwrap_or_default();
        if error.as_ref().is_some_and(refuses_streaming) && watch.initial == Initial::Streamed {
            watch.initial = Initial::Listed;
            continue;
        }
        if error.is_some() {
            // The version may be too old (410) or, after etcd was restored, from a future that never came.
            watch.resume = None;
        }
        if watch.news.send(WatchNews::Ended(error)).await.is_err() {
            return;
        }
        let cap = if *urgent.borrow_and_update() {
            URGENT_BACKOFF_CAP
        } else {
            BACKOFF_CAP
        };
        tokio::select! {
            () = sleep(backoff.next(cap).max(asked)) => {}
            Ok(_) = urgent.wait_for(|urgent| *urgent), if cap == BACKOFF_CAP && asked.is_zero() => backoff.reset(),
        }
    }
}

/// Whether the server does not do streaming lists: a 422 that names the parameter.
fn refuses_streaming(error: &ApiError) -> bool {
    matches!(error, ApiError::Refused { code: 422, message, .. } if message.contains("sendInitialEvents"))
}

struct NodeWatch<'a> {
    api: &'a ApiServer,
    name: &'a str,
    news: mpsc::Sender<WatchNews>,
    initial: Initial,
    /// The last version seen, from which a watch goes on without telling the state again.
    resume: Option<String>,
}

impl NodeWatch<'_> {
    /// One watch from its start to its end.
    async fn session(&mut self) -> Result<(), ApiError> {
        if self.resume.is_none() && self.initial == Initial::Listed {
            self.list().await?;
        }
        let streamed = self.resume.is_none();
        let params = WatchParams {
            field_selector: Some(self.selector()),
            timeout: Some(WATCH_SECONDS),
            bookmarks: true,
            send_initial_events: streamed,
            ..WatchParams::default()
        };
        let version = self.resume.clone().unwrap_or_default();
        let mut lines = self
            .api
            .watch(valid(
                request::Request::new(NODES).watch(&params, &version),
            )?)
            .await?;
        if !streamed {
            self.tell(WatchNews::Synced).await;
        }
        self.follow(&mut lines, streamed).await
    }

    async fn follow(&mut self, lines: &mut Lines, streamed: bool) -> Result<(), ApiError> {
        let mut exists = !streamed;
        while let Some(event) = lines.next::<NodeView>().await? {
            match event {
                WatchEvent::Added(node) | WatchEvent::Modified(node) => {
                    exists = true;
                    // Mid-way through the initial events a version is no place to go on from.
                    if self.resume.is_some() {
                        self.resume = Some(node.resource_version.to_string());
                    }
                    self.tell(WatchNews::Node(node)).await;
                }
                WatchEvent::Deleted(node) => {
                    self.resume = Some(node.resource_version.to_string());
                    self.tell(WatchNews::Gone(Some(node.uid))).await;
                }
                WatchEvent::Bookmark(bookmark) => {
                    if self.resume.is_none() {
                        if !bookmark
                            .metadata
                            .annotations
                            .contains_key(INITIAL_EVENTS_END)
                        {
                            continue;
                        }
                        if !exists {
                            self.tell(WatchNews::Gone(None)).await;
                        }
                        self.tell(WatchNews::Synced).await;
                    }
                    self.resume = Some(bookmark.metadata.resource_version);
                }
                // `Lines` gives these as errors.
                WatchEvent::Error(_) => {}
            }
        }
        Ok(())
    }

    async fn list(&mut self) -> Result<(), ApiError> {
        #[derive(Deserialize)]
        struct NodeList {
            metadata: ListMeta,
            items: Vec<NodeView>,
        }
        // No resourceVersion: the state as etcd has it now.
        let params = ListParams {
            field_selector: Some(self.selector()),
            ..ListParams::default()
        };
        let list: NodeList = self
            .api
            .request(valid(request::Request::new(NODES).list(&params))?)
            .await?;
        match list.items.into_iter().next() {
            Some(node) => self.tell(WatchNews::Node(node)).await,
            None => self.tell(WatchNews::Gone(None)).await,
        }
        self.resume = list.metadata.resource_version;
        Ok(())
    }

    fn selector(&self) -> String {
        format!("metadata.name={}", self.name)
    }

    /// A closed channel is noticed by [`run`], at the end of the session at the latest.
    async fn tell(&self, news: WatchNews) {
        let _ = self.news.send(news).await;
    }
}
