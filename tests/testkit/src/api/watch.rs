//! The stream of events that answers a watch.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::time::Duration;

use bytes::Bytes;
use futures_util::{Stream, stream};
use hyper::body::Frame;
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::time::{Instant, timeout_at};

use super::object::{Resource, Selection};
use super::route::Parameters;
use super::status::{Status, error_event};
use super::store::{self, Store};
use super::upstream::line;

/// A time that is longer than any test.
const FOREVER: Duration = Duration::from_hours(24);

/// The state of a watch between two events.
pub(super) struct Watch {
    store: watch::Receiver<Store>,
    selection: Selection,
    bookmarks: bool,
    epoch: u64,
    deadline: Instant,
    /// The version up to which events are sent or waiting.
    version: u64,
    waiting: VecDeque<Value>,
    /// Whether the watch ends after the waiting events.
    ended: bool,
}

impl Watch {
    /// The first events, or the refusal of the watch.
    pub(super) fn open(
        mut receiver: watch::Receiver<Store>,
        resource: Resource,
        parameters: &Parameters,
        streaming_lists: bool,
    ) -> Result<Self, Status> {
        let initial = parameters.flag("sendInitialEvents");
        if initial && !streaming_lists {
            return Err(Status::forbidden_option(
                "sendInitialEvents",
                "sendInitialEvents is forbidden for watch unless the WatchList feature gate is enabled",
            ));
        }
        if initial && parameters.get("resourceVersionMatch") != Some("NotOlderThan") {
            return Err(Status::forbidden_option(
                "resourceVersionMatch",
                "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan",
            ));
        }
        let selection = parameters.selection(resource)?;
        let bookmarks = parameters.flag("allowWatchBookmarks");
        let from = parameters.number("resourceVersion")?.unwrap_or(0);
        let limit = parameters
            .number("timeoutSeconds")?
            .map_or(FOREVER, Duration::from_secs);

        let store = receiver.borrow_and_update();
        let mut waiting = VecDeque::new();
        let mut ended = false;
        let mut version = store.version();
        if initial || from == 0 {
            let added = |object: &Value| json!({"type": "ADDED", "object": object});
            waiting.extend(store.list(&selection).map(added));
        } else if let Err(expired) = store.remembers(from) {
            // This is not an HTTP status, because the API server has already accepted the watch.
            waiting.push_back(error_event(&expired));
            ended = true;
        } else {
            version = from;
        }
        if initial && bookmarks {
            let mut object = store::bookmark(resource, version);
            object["metadata"]["annotations"] = json!({"k8s.io/initial-events-end": "true"});
            waiting.push_back(json!({"type": "BOOKMARK", "object": object}));
        }
        let epoch = store.epoch;
        drop(store);
        Ok(Self {
            store: receiver,
            selection,
            bookmarks,
            epoch,
            deadline: Instant::now() + limit,
            version,
            waiting,
            ended,
        })
    }

    /// The events as lines of JSON.
    pub(super) fn into_frames(self) -> impl Stream<Item = Result<Frame<Bytes>, Infallible>> {
        stream::unfold(self, |mut watch| async {
            let line = line(&watch.next().await?);
            Some((Ok(Frame::data(line.into())), watch))
        })
    }

    async fn next(&mut self) -> Option<Value> {
        loop {
            if let Some(event) = self.waiting.pop_front() {
                return Some(event);
            }
            if self.ended {
                return None;
            }
            self.take_new_events();
            if self.waiting.is_empty() && !self.ended {
                timeout_at(self.deadline, self.store.changed())
                    .await
                    .ok()?
                    .ok()?;
            }
        }
    }

    fn take_new_events(&mut self) {
        let store = self.store.borrow_and_update();
        if store.epoch != self.epoch {
            self.waiting.extend(store.farewell.clone());
            self.ended = true;
            return;
        }
        if !store.paused {
            let events = store.events(self.version, &self.selection, self.bookmarks);
            self.waiting.extend(events);
            self.version = self.version.max(store.version());
        }
    }
}
