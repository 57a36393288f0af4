//! A watch of some objects, for ever.
//!
//! Written here rather than taken from kube-runtime, whose watcher reconnects without any wait after a clean end, does
//! not fall back where streaming lists are refused, asks for `resourceVersion=0` (on a server that lags, the past),
//! and has a backoff that cannot be reset from outside.

use std::collections::HashSet;
use std::pin::pin;
use std::time::Duration;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ListMeta;
use kube::core::params::{ListParams, WatchParams};
use kube::core::{WatchEvent, request};
use serde::Deserialize;
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, sleep_until, timeout};

use super::object::Object;
use super::{ApiError, ApiServer, Lines, valid};
use crate::backoff::{Backoff, jittered};

/// How long the server should keep a watch open, and up to half as long again, so that nodes whose watches began
/// together do not renew them together. Shorter costs requests, longer delays the fallback for a connection that neither
/// PING nor keep-alive shows dead.
const WATCH_TIME: Duration = Duration::from_mins(8);
/// What the server may be late with the end.
const WATCH_GRACE: Duration = Duration::from_secs(30);
const BACKOFF_BASE: Duration = Duration::from_millis(500);
const BACKOFF_CAP: Duration = Duration::from_secs(30);
/// The cap while a taint waits for nothing but the API server.
const URGENT_BACKOFF_CAP: Duration = Duration::from_secs(5);
/// Longest wait after a clean end during which what is known still counts as up to date.
const CLEAN_WAIT: Duration = Duration::from_secs(1);
/// A watch that lived so long was a good one: the next failure starts the backoff afresh.
const GOOD_WATCH: Duration = Duration::from_secs(10);
/// Annotation of the bookmark that ends the initial events (`metav1.InitialEventsAnnotationKey`).
const INITIAL_EVENTS_END: &str = "k8s.io/initial-events-end";

/// What is watched.
#[derive(Debug, Clone)]
pub struct Collection {
    /// Such as `/api/v1/nodes`.
    pub path: String,
    /// By the server, as in a list.
    pub field_selector: String,
    /// The same for labels; empty: all.
    pub label_selector: String,
}

impl Collection {
    /// The one object of this name.
    #[must_use]
    pub fn named(path: &str, name: &str) -> Self {
        Self {
            path: path.into(),
            field_selector: format!("metadata.name={name}"),
            label_selector: String::new(),
        }
    }
}

/// What the watch tells.
#[derive(Debug)]
pub enum News<T> {
    /// The state is about to be asked for anew, past every cache. After a restored backup, versions may be lower than
    /// before.
    Afresh,
    /// An object as it was at some time; it may be older than what is known already.
    Object(T),
    /// The object with this uid is no longer there, or no longer selected.
    Gone(String),
    /// All objects there are have been told of, and their changes follow.
    Synced,
    /// It ended and is about to start again; why, unless the server ended it in good order.
    Ended(Option<ApiError>),
}

/// Watches `collection` for ever. `urgent` says whether a taint waits for nothing but the API server: turning true, it
/// ends a wait and starts the backoff afresh. Where the credentials were refused, other credentials end the wait too. Returns when nobody listens to `news` any more.
pub async fn run<T: Object>(
    api: &ApiServer,
    collection: Collection,
    news: mpsc::Sender<News<T>>,
    mut urgent: watch::Receiver<bool>,
) {
    let restarts = api.traffic.restarts(&collection.path);
    let mut watch = Watch {
        api,
        collection,
        news,
        alive: HashSet::new(),
    };
    let mut backoff = Backoff::new(BACKOFF_BASE);
    // Whether this outage has been cut short once: a gate that flaps must not do so each time.
    let mut hurried = false;
    loop {
        let started = Instant::now();
        let listed = api.lists();
        let time = jittered(WATCH_TIME);
        let error = match timeout(time + WATCH_GRACE, watch.session(time)).await {
            Ok(Ok(())) => None,
            Ok(Err(error)) => Some(error),
            Err(_) => Some(ApiError::Transport("the watch outlived its time".into())),
        };
        if started.elapsed() > GOOD_WATCH {
            backoff.reset();
            hurried = false;
        }
        if error.as_ref().is_some_and(refuses_streaming) && !listed {
            api.list_from_now_on();
            continue;
        }
        let refused = error.as_ref().is_some_and(ApiError::refuses_credentials);
        let mut renewed = pin!(api.renewed());
        let asked = error
            .as_ref()
            .and_then(ApiError::retry_after)
            .map_or(Duration::ZERO, jittered);
        let is_urgent = *urgent.borrow_and_update();
        let cap = if is_urgent {
            URGENT_BACKOFF_CAP
        } else {
            BACKOFF_CAP
        };
        let wait = backoff.next(cap).max(asked);
        // What is known is not kept up to date meanwhile.
        let often = || ApiError::Transport("the watch ends again and again".into());
        let restarts = error.as_ref().map_or(&restarts.ended, |_| &restarts.failed);
        restarts.inc();
        let error = error.or_else(|| (wait > CLEAN_WAIT).then(often));
        if let Some(error) = &error {
            api.failed(error);
        }
        if watch.news.send(News::Ended(error)).await.is_err() {
            return;
        }
        let resume_at = Instant::now() + wait;
        let is_in_hurry = tokio::select! {
            () = sleep_until(resume_at) => false,
            Ok(_) = urgent.wait_for(|urgent| *urgent), if !is_urgent && asked.is_zero() => true,
            () = &mut renewed, if refused => false,
        };
        if is_in_hurry && hurried {
            tokio::select! {
                () = sleep_until(resume_at.min(Instant::now() + URGENT_BACKOFF_CAP)) => {}
                () = &mut renewed, if refused => {}
            }
        } else if is_in_hurry {
            backoff.reset();
            hurried = true;
        }
    }
}

/// Whether the server does not do streaming lists: a 422 that names the parameter.
fn refuses_streaming(error: &ApiError) -> bool {
    matches!(error, ApiError::Refused { code: 422, message, .. } if message.contains("sendInitialEvents"))
}

struct Watch<'a, T> {
    api: &'a ApiServer,
    collection: Collection,
    news: mpsc::Sender<News<T>>,
    /// The uids that have been told of and are not gone.
    alive: HashSet<String>,
}

impl<T: Object> Watch<'_, T> {
    /// One watch from its start to its end.
    ///
    /// Each asks for the state anew instead of going on from the last version seen: where the state comes in
    /// the watch itself (KEP-3157) that costs no request more, and where etcd was restored from a backup, the server answers a watch from a version of the lost future with silence.
    async fn session(&mut self, time: Duration) -> Result<(), ApiError> {
        self.tell(News::Afresh).await;
        let version = if self.api.lists() {
            self.list().await?
        } else {
            None
        };
        let streamed = version.is_none();
        let params = WatchParams {
            field_selector: Some(self.collection.field_selector.clone()),
            label_selector: self.label_selector(),
            timeout: u32::try_from(time.as_secs()).ok(),
            bookmarks: true,
            send_initial_events: streamed,
        };
        let version = version.unwrap_or_default();
        let request = request::Request::new(&self.collection.path).watch(&params, &version);
        let mut lines = self.api.watch(valid(request)?).await?;
        if !streamed {
            self.tell(News::Synced).await;
        }
        self.follow(&mut lines, streamed.then(HashSet::new)).await
    }

    /// `initial`: the uids told of so far, while the initial events arrive.
    async fn follow(
        &mut self,
        lines: &mut Lines,
        mut initial: Option<HashSet<String>>,
    ) -> Result<(), ApiError> {
        while let Some(event) = lines.next::<T>().await? {
            match event {
                WatchEvent::Added(object) | WatchEvent::Modified(object) => {
                    if let Some(initial) = &mut initial {
                        initial.insert(object.metadata().uid.clone());
                    }
                    self.tell_of(object).await;
                }
                WatchEvent::Deleted(object) => {
                    if let Some(initial) = &mut initial {
                        initial.remove(&object.metadata().uid);
                    }
                    self.tell_gone(&object.metadata().uid).await;
                }
                WatchEvent::Bookmark(bookmark) => {
                    let is_end = bookmark
                        .metadata
                        .annotations
                        .contains_key(INITIAL_EVENTS_END);
                    if is_end && let Some(initial) = initial.take() {
                        self.tell_missing(&initial).await;
                        self.tell(News::Synced).await;
                    }
                }
                // `Lines` gives these as errors.
                WatchEvent::Error(_) => {}
            }
        }
        Ok(())
    }

    /// Gives the version to watch from.
    async fn list(&mut self) -> Result<Option<String>, ApiError> {
        #[derive(Deserialize)]
        struct List<T> {
            metadata: ListMeta,
            items: Vec<T>,
        }
        // No resourceVersion: the state as etcd has it now.
        let params = ListParams {
            field_selector: Some(self.collection.field_selector.clone()),
            label_selector: self.label_selector(),
            ..ListParams::default()
        };
        let request = request::Request::new(&self.collection.path).list(&params);
        let list: List<T> = self.api.request(valid(request)?).await?;
        let listed = list
            .items
            .iter()
            .map(|object| object.metadata().uid.clone())
            .collect();
        for object in list.items {
            self.tell_of(object).await;
        }
        self.tell_missing(&listed).await;
        Ok(list.metadata.resource_version)
    }

    fn label_selector(&self) -> Option<String> {
        Some(self.collection.label_selector.clone()).filter(|selector| !selector.is_empty())
    }

    async fn tell_of(&mut self, object: T) {
        self.alive.insert(object.metadata().uid.clone());
        self.tell(News::Object(object)).await;
    }

    async fn tell_gone(&mut self, uid: &str) {
        if self.alive.remove(uid) {
            self.tell(News::Gone(uid.to_owned())).await;
        }
    }

    /// What was there before a break and is not among the `present`.
    async fn tell_missing(&mut self, present: &HashSet<String>) {
        let missing: Vec<_> = self.alive.difference(present).cloned().collect();
        for uid in missing {
            self.tell_gone(&uid).await;
        }
    }

    /// A closed channel is noticed by [`run`], at the end of the session at the latest.
    async fn tell(&self, news: News<T>) {
        let _ = self.news.send(news).await;
    }
}
