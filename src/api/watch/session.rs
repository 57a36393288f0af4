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

use super::{CLEAN_GAP, Collection, ListMethod, WatchUpdate};
use crate::api::object::Object;
use crate::api::{ApiError, ApiServer, Lines, Verb};

/// Annotation of the bookmark that ends the initial events (`metav1.InitialEventsAnnotationKey`).
const INITIAL_EVENTS_END: &str = "k8s.io/initial-events-end";
/// From the headers of a streaming list to that bookmark. Some servers never send it (kubernetes#122805: etcd does not
/// report its progress), and some proxies hold a body back until it is complete.
const INITIAL_EVENTS_TIMEOUT: Duration = Duration::from_secs(10);

/// What is known across sessions.
pub(super) struct Watch<'a, T> {
    api: &'a ApiServer,
    collection: Collection,
    updates: mpsc::Sender<WatchUpdate<T>>,
    /// The uids that were applied and not deleted.
    known: HashSet<String>,
    /// When the session had sent all objects.
    up_since: Option<Instant>,
    /// After a clean end: until when the known objects count as up to date.
    current_until: Option<Instant>,
    /// The `resourceVersion` of the session's list; 0 without a list.
    listed_version: u64,
}

struct Listed {
    version: String,
    uids: HashSet<String>,
}

impl<'a, T: Object> Watch<'a, T> {
    pub(super) fn new(
        api: &'a ApiServer,
        collection: Collection,
        updates: mpsc::Sender<WatchUpdate<T>>,
    ) -> Self {
        Self {
            api,
            collection,
            updates,
            known: HashSet::new(),
            up_since: None,
            current_until: None,
            listed_version: 0,
        }
    }

    /// One watch from its start to its end.
    ///
    /// Each session reads the whole state instead of resuming from the last version. With a streaming list, that costs no
    /// extra request. And after etcd was restored from a backup, the server stays silent on a watch from a version that
    /// was lost.
    pub(super) async fn session(
        &mut self,
        method: ListMethod,
        time: Duration,
    ) -> Result<(), ApiError> {
        self.up_since = None;
        self.send(WatchUpdate::Init).await;
        let mut lines = self.init_in_time(method, time).await?;
        self.up_since = Some(Instant::now());
        self.send(WatchUpdate::InitDone).await;
        while let Some(event) = lines.next::<T>().await? {
            self.handle(event).await;
        }
        Ok(())
    }

    /// How long the last session was up.
    pub(super) fn time_up(&self) -> Duration {
        self.up_since
            .map_or(Duration::ZERO, |since| since.elapsed())
    }

    /// Reports the end of a session. Fails if the receiver of the updates was dropped.
    pub(super) async fn end(
        &mut self,
        error: Option<ApiError>,
    ) -> Result<(), SendError<WatchUpdate<T>>> {
        if let Some(error) = &error {
            self.api.record(error);
        }
        self.current_until = error.is_none().then(|| Instant::now() + CLEAN_GAP);
        self.updates.send(WatchUpdate::Ended(error)).await
    }

    /// Like [`Self::init`], but after a clean end, it reports when that takes too long.
    async fn init_in_time(
        &mut self,
        method: ListMethod,
        time: Duration,
    ) -> Result<Lines, ApiError> {
        let (current_until, updates) = (self.current_until, self.updates.clone());
        let mut init = pin!(self.init(method, time));
        if let Some(until) = current_until {
            if let Ok(result) = timeout_at(until, &mut init).await {
                return result;
            }
            let _ = updates.send(WatchUpdate::Stale).await;
        }
        init.await
    }

    /// Starts the watch. Returns when all objects have been sent.
    async fn init(&mut self, method: ListMethod, time: Duration) -> Result<Lines, ApiError> {
        let list = match method {
            ListMethod::Streaming => None,
            _ => Some(self.list().await?),
        };
        self.listed_version = list
            .as_ref()
            .and_then(|list| list.version.parse().ok())
            .unwrap_or_default();
        // Without a version, a watch begins with all objects, which the server takes from a cache.
        let version = match (&list, method) {
            (Some(list), ListMethod::ListThenWatch) => &list.version,
            _ => "",
        };
        let params = WatchParams {
            field_selector: Some(self.collection.field_selector.clone()),
            label_selector: self.label_selector(),
            timeout: u32::try_from(time.as_secs()).ok(),
            bookmarks: true,
            send_initial_events: list.is_none(),
        };
        let request = request::Request::new(&self.collection.path).watch(&params, version)?;
        let mut lines = self.api.watch(request).await?;
        match list {
            None => {
                let present = self.initial_events(&mut lines, None).await?;
                self.delete_missing(&present).await;
            }
            Some(list) if method == ListMethod::ListThenConfirmedWatch => {
                self.initial_events(&mut lines, Some(&list.uids)).await?;
            }
            Some(_) => {}
        }
        Ok(lines)
    }

    /// Returns the uids of the objects in the initial events, when these end: at their bookmark or, if they repeat a list,
    /// when all `listed` objects have arrived.
    async fn initial_events(
        &mut self,
        lines: &mut Lines,
        listed: Option<&HashSet<String>>,
    ) -> Result<HashSet<String>, ApiError> {
        let mut present = HashSet::new();
        let is_complete = async {
            while listed.is_none_or(|listed| !listed.is_subset(&present)) {
                match lines.next::<T>().await? {
                    None => return Ok(false),
                    Some(WatchEvent::Bookmark(bookmark))
                        if bookmark
                            .metadata
                            .annotations
                            .contains_key(INITIAL_EVENTS_END) =>
                    {
                        break;
                    }
                    Some(event) => {
                        if let WatchEvent::Added(object) | WatchEvent::Modified(object) = &event {
                            present.insert(object.metadata().uid.clone());
                        }
                        self.handle(event).await;
                    }
                }
            }
            Ok(true)
        };
        let when = match timeout(INITIAL_EVENTS_TIMEOUT, is_complete).await {
            Ok(Ok(true)) => return Ok(present),
            Ok(Ok(false)) => "before it ended".to_owned(),
            Ok(Err(error)) => return Err(error),
            Err(_) => format!("within {} s", INITIAL_EVENTS_TIMEOUT.as_secs()),
        };
        let what = match (present.len(), listed.map(HashSet::len)) {
            (0, _) => "nothing".to_owned(),
            (count, Some(listed)) => {
                format!("objects ({count}), but not all that were listed ({listed})")
            }
            (count, None) => {
                format!("objects ({count}), but no bookmark with {INITIAL_EVENTS_END},")
            }
        };
        let message = format!("it sent {what} {when}");
        Err(ApiError::IncompleteStreamingList(message))
    }

    async fn handle(&mut self, event: WatchEvent<T>) {
        match event {
            // A watch without a version may begin before the list.
            WatchEvent::Added(object) | WatchEvent::Modified(object)
                if object.metadata().resource_version > self.listed_version =>
            {
                self.apply(object).await;
            }
            WatchEvent::Deleted(object) => self.delete(&object.metadata().uid).await,
            // `Lines` returns `Error` as an error.
            _ => {}
        }
    }

    /// Sends all objects.
    async fn list(&mut self) -> Result<Listed, ApiError> {
        #[derive(Deserialize)]
        struct List<T> {
            metadata: ListMeta,
            items: Vec<T>,
        }
        // Without a resourceVersion, the server returns the state as etcd has it now.
        let params = ListParams {
            field_selector: Some(self.collection.field_selector.clone()),
            label_selector: self.label_selector(),
            ..ListParams::default()
        };
        let request = request::Request::new(&self.collection.path).list(&params)?;
        let list: List<T> = self.api.request(Verb::List, request).await?;
        let mut uids = HashSet::new();
        for object in list.items {
            uids.insert(object.metadata().uid.clone());
            self.apply(object).await;
        }
        self.delete_missing(&uids).await;
        let version = list.metadata.resource_version.unwrap_or_default();
        Ok(Listed { version, uids })
    }

    fn label_selector(&self) -> Option<String> {
        Some(self.collection.label_selector.clone()).filter(|selector| !selector.is_empty())
    }

    async fn apply(&mut self, object: T) {
        self.known.insert(object.metadata().uid.clone());
        self.send(WatchUpdate::Apply(object)).await;
    }

    async fn delete(&mut self, uid: &str) {
        if self.known.remove(uid) {
            self.send(WatchUpdate::Delete(uid.to_owned())).await;
        }
    }

    /// Deletes the known objects that are not among the `present` ones.
    async fn delete_missing(&mut self, present: &HashSet<String>) {
        let missing: Vec<_> = self.known.difference(present).cloned().collect();
        for uid in missing {
            self.delete(&uid).await;
        }
    }

    /// [`super::run`] notices a closed channel, at the end of the session at the latest.
    async fn send(&self, update: WatchUpdate<T>) {
        let _ = self.updates.send(update).await;
    }
}
