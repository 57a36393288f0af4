//! One watch, from its start to its end.

use std::collections::HashSet;
use std::pin::pin;
use std::time::Duration;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ListMeta;
use kube::core::params::{ListParams, WatchParams};
use kube::core::{WatchEvent, request};
use serde::Deserialize;
use tokio::sync::mpsc;
use tokio::sync::mpsc::error::SendError;
use tokio::time::{Instant, timeout, timeout_at};

use super::{CLEAN_GAP, Collection, WatchUpdate};
use crate::api::object::Object;
use crate::api::{ApiError, ApiServer, Lines, valid};

/// Annotation of the bookmark that ends the initial events (`metav1.InitialEventsAnnotationKey`).
const INITIAL_EVENTS_END: &str = "k8s.io/initial-events-end";
/// From the headers of a streaming list to that bookmark. Some servers never send it (kubernetes#122805: etcd does not
/// report its progress), and some proxies hold a body back until it is complete.
const INITIAL_EVENTS: Duration = Duration::from_secs(10);

/// What is known across sessions.
pub(super) struct Watch<'a, T> {
    api: &'a ApiServer,
    collection: Collection,
    news: mpsc::Sender<WatchUpdate<T>>,
    /// The uids that have been told of and are not gone.
    alive: HashSet<String>,
    /// Since when the session has told all there is.
    up_since: Option<Instant>,
    /// After a clean end: until when what is known counts as up to date.
    current_until: Option<Instant>,
    /// Of the list that the session began with; 0 if there was none.
    listed_version: u64,
}

/// What a list has told of.
struct Listed {
    version: String,
    uids: HashSet<String>,
}

impl<'a, T: Object> Watch<'a, T> {
    pub(super) fn new(
        api: &'a ApiServer,
        collection: Collection,
        news: mpsc::Sender<WatchUpdate<T>>,
    ) -> Self {
        Self {
            api,
            collection,
            news,
            alive: HashSet::new(),
            up_since: None,
            current_until: None,
            listed_version: 0,
        }
    }

    /// One watch from its start to its end.
    ///
    /// Each asks for the state anew instead of going on from the last version seen: where the state comes in the watch
    /// itself (KEP-3157) that costs no request more, and where etcd was restored from a backup, the server answers a watch
    /// from a version of the lost future with silence.
    pub(super) async fn session(&mut self, time: Duration) -> Result<(), ApiError> {
        self.up_since = None;
        self.tell(WatchUpdate::Afresh).await;
        let mut lines = self.begin(time).await?;
        self.up_since = Some(Instant::now());
        self.tell(WatchUpdate::Synced).await;
        while let Some(event) = lines.next::<T>().await? {
            self.take(event, None).await;
        }
        Ok(())
    }

    /// How long the last session was up.
    pub(super) fn time_up(&self) -> Duration {
        self.up_since
            .map_or(Duration::ZERO, |since| since.elapsed())
    }

    /// Tells of the end of a session. Fails when nobody listens any more.
    pub(super) async fn end(
        &mut self,
        error: Option<ApiError>,
    ) -> Result<(), SendError<WatchUpdate<T>>> {
        if let Some(error) = &error {
            self.api.failed(error);
        }
        self.current_until = error.is_none().then(|| Instant::now() + CLEAN_GAP);
        self.news.send(WatchUpdate::Ended(error)).await
    }

    /// Returns when all there is has been told of. After a clean end, tells when that takes too long.
    async fn begin(&mut self, time: Duration) -> Result<Lines, ApiError> {
        let (current_until, news) = (self.current_until, self.news.clone());
        let mut telling = pin!(self.tell_all(time));
        let Some(until) = current_until else {
            return telling.await;
        };
        if let Ok(told) = timeout_at(until, &mut telling).await {
            return told;
        }
        let _ = news.send(WatchUpdate::Outdated).await;
        telling.await
    }

    async fn tell_all(&mut self, time: Duration) -> Result<Lines, ApiError> {
        let list = if self.api.lists() {
            Some(self.list().await?)
        } else {
            None
        };
        let confirms = list.is_some() && self.api.doubts();
        // Without a version, a watch begins with all objects there are, which the server takes from a cache.
        let version = list.as_ref().filter(|_| !confirms);
        let version = version.map_or("", |list| &list.version);
        let params = WatchParams {
            field_selector: Some(self.collection.field_selector.clone()),
            label_selector: self.label_selector(),
            timeout: u32::try_from(time.as_secs()).ok(),
            bookmarks: true,
            send_initial_events: list.is_none(),
        };
        let request = request::Request::new(&self.collection.path).watch(&params, version);
        let mut lines = self.api.watch(valid(request)?).await?;
        let listed_version = list.as_ref().and_then(|list| list.version.parse().ok());
        self.listed_version = listed_version.unwrap_or_default();
        match list {
            None => {
                let present = self.initial_events(&mut lines, None).await?;
                self.tell_missing(&present).await;
            }
            Some(list) if confirms => {
                self.initial_events(&mut lines, Some(&list.uids)).await?;
            }
            Some(_) => {}
        }
        Ok(lines)
    }

    /// Returns at the end of the initial events, with the uids of the objects that they are about: at their bookmark or,
    /// where they repeat a list, when all that was `listed` has come.
    async fn initial_events(
        &mut self,
        lines: &mut Lines,
        listed: Option<&HashSet<String>>,
    ) -> Result<HashSet<String>, ApiError> {
        let mut present = HashSet::new();
        let end = self.until_the_end_of_initial_events(lines, &mut present, listed);
        let when = match timeout(INITIAL_EVENTS, end).await {
            Ok(Ok(true)) => return Ok(present),
            Ok(Ok(false)) => "before it ended".to_owned(),
            Ok(Err(error)) => return Err(error),
            Err(_) => format!("within {} s", INITIAL_EVENTS.as_secs()),
        };
        let what = match (present.len(), listed) {
            (0, _) => "nothing".to_owned(),
            (count, Some(listed)) => {
                format!(
                    "objects ({count}), but not all that were listed ({})",
                    listed.len()
                )
            }
            (count, None) => {
                format!("objects ({count}), but no bookmark with {INITIAL_EVENTS_END},")
            }
        };
        Err(ApiError::Unfinished(format!("it sent {what} {when}")))
    }

    /// Gives whether that end came, rather than that of the watch.
    async fn until_the_end_of_initial_events(
        &mut self,
        lines: &mut Lines,
        present: &mut HashSet<String>,
        listed: Option<&HashSet<String>>,
    ) -> Result<bool, ApiError> {
        while listed.is_none_or(|listed| !listed.is_subset(present)) {
            let Some(event) = lines.next::<T>().await? else {
                return Ok(false);
            };
            if self.take(event, Some(present)).await {
                return Ok(true);
            }
        }
        Ok(true)
    }

    /// Tells of an event, and gives whether it is the end of the initial ones. `present`: the uids of the objects in them,
    /// while those arrive.
    async fn take(&mut self, event: WatchEvent<T>, present: Option<&mut HashSet<String>>) -> bool {
        match event {
            WatchEvent::Added(object) | WatchEvent::Modified(object) => {
                if let Some(present) = present {
                    present.insert(object.metadata().uid.clone());
                }
                // The list was as new: a watch that begins without a version may begin in the past.
                if object.metadata().resource_version > self.listed_version {
                    self.tell_of(object).await;
                }
            }
            WatchEvent::Deleted(object) => self.tell_gone(&object.metadata().uid).await,
            WatchEvent::Bookmark(bookmark) => {
                let annotations = &bookmark.metadata.annotations;
                return annotations.contains_key(INITIAL_EVENTS_END);
            }
            // `Lines` gives these as errors.
            WatchEvent::Error(_) => {}
        }
        false
    }

    /// Tells of all objects there are.
    async fn list(&mut self) -> Result<Listed, ApiError> {
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
        let uids = list
            .items
            .iter()
            .map(|object| object.metadata().uid.clone())
            .collect();
        for object in list.items {
            self.tell_of(object).await;
        }
        self.tell_missing(&uids).await;
        let version = list.metadata.resource_version.unwrap_or_default();
        Ok(Listed { version, uids })
    }

    fn label_selector(&self) -> Option<String> {
        Some(self.collection.label_selector.clone()).filter(|selector| !selector.is_empty())
    }

    async fn tell_of(&mut self, object: T) {
        self.alive.insert(object.metadata().uid.clone());
        self.tell(WatchUpdate::Object(object)).await;
    }

    async fn tell_gone(&mut self, uid: &str) {
        if self.alive.remove(uid) {
            self.tell(WatchUpdate::Gone(uid.to_owned())).await;
        }
    }

    /// What was there before a break and is not among the `present`.
    async fn tell_missing(&mut self, present: &HashSet<String>) {
        let missing: Vec<_> = self.alive.difference(present).cloned().collect();
        for uid in missing {
            self.tell_gone(&uid).await;
        }
    }

    /// A closed channel is noticed by [`super::run`], at the end of the session at the latest.
    async fn tell(&self, news: WatchUpdate<T>) {
        let _ = self.news.send(news).await;
    }
}
