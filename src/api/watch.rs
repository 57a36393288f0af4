//! A watch of some objects that restarts without end.
//!
//! kube-runtime's watcher does not fit: it reconnects without a wait after a clean end, does not fall back where streaming
//! lists are refused, asks for `resourceVersion=0` (which may be in the past if a server lags), and has a backoff that
//! nobody else can reset.

mod session;

use std::time::Duration;

use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, sleep_until, timeout};

use super::object::Object;
use super::{ApiError, ApiServer};
use crate::backoff::{Backoff, jittered};
use session::Watch;

/// How long the server keeps a watch open. The client adds up to half of it, so that nodes whose watches began together do
/// not renew them together. A shorter time costs requests. A longer one delays the fallback for a connection that is dead
/// although PINGs and keep-alive pass.
const WATCH_TIME: Duration = Duration::from_mins(8);
/// How late the server may end a watch.
const WATCH_GRACE: Duration = Duration::from_secs(30);
const BACKOFF_BASE: Duration = Duration::from_millis(500);
const BACKOFF_CAP: Duration = Duration::from_secs(30);
/// The cap while a taint waits for the API server alone.
const URGENT_BACKOFF_CAP: Duration = Duration::from_secs(5);
/// The longest wait after a clean end during which the known objects still count as up to date.
const CLEAN_WAIT: Duration = Duration::from_secs(1);
/// How long after a clean end the known objects count as up to date while the next watch has not sent all. A healthy
/// server needs some milliseconds after the wait, and a normal renewal must not close gates.
const CLEAN_GAP: Duration = Duration::from_secs(2);
/// The longest wait that is never cut short. Its jitter keeps nodes apart that lost the server together.
const SHORT_WAIT: Duration = Duration::from_secs(1);
/// A watch that was up for longer resets the backoff.
const GOOD_WATCH: Duration = Duration::from_secs(10);

/// The objects to watch.
#[derive(Debug, Clone)]
pub struct Collection {
    /// For example `/api/v1/nodes`.
    pub path: String,
    pub field_selector: String,
    /// Empty for all objects.
    pub label_selector: String,
}

impl Collection {
    /// The one object of this name.
    pub fn named(path: &str, name: &str) -> Self {
        Self {
            path: path.into(),
            field_selector: format!("metadata.name={name}"),
            label_selector: String::new(),
        }
    }
}

/// How a watch obtains the objects that exist when it begins. A later method replaces an earlier one for good: its reason
/// lasts, and a list costs little.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum ListMethod {
    /// A streaming list (KEP-3157): the watch sends the objects first.
    Streaming,
    /// A list comes before the watch, as the server refused a streaming list. They are off by default in Kubernetes 1.30,
    /// 1.31 and 1.33, and may be off in any version.
    ListThenWatch,
    /// A list comes before the watch, and the watch must send all listed objects again, as a streaming list was accepted
    /// and not completed. The cause may also hold back the events of a watch.
    ListThenConfirmedWatch,
}

/// What a watch reports. `Init`, `Apply`, `Delete` and `InitDone` are as in kube-runtime.
#[derive(Debug)]
pub enum WatchUpdate<T> {
    /// The watch starts or restarts, and is about to send the objects as etcd has them. After a restored backup, their
    /// versions may be lower than before.
    Init,
    /// An object as it was at some time. It may be older than the known one.
    Apply(T),
    /// The object with this uid was deleted, or is no longer selected.
    Delete(String),
    /// All objects have been sent, and their changes follow.
    InitDone,
    /// The watch ended and is about to restart. There is an error unless the server ended it cleanly.
    Ended(Option<ApiError>),
    /// The watch ended cleanly, but the next one has not sent all objects yet: the known ones may be out of date.
    Stale,
}

/// Watches `collection` until the receiver of `updates` is dropped. `urgent`: whether a taint waits for the API server
/// alone; when that turns true, it ends a wait and resets the backoff. Other credentials end a wait if the last ones were
/// refused.
pub async fn run<T: Object>(
    api: &ApiServer,
    collection: Collection,
    updates: mpsc::Sender<WatchUpdate<T>>,
    urgent: watch::Receiver<bool>,
) {
    let [clean_restarts, failed_restarts] = api.traffic.restarts(&collection.path);
    let mut watch = Watch::new(api, collection, updates);
    let mut pace = Pace::new(urgent);
    loop {
        let method = *api.list_method();
        pace.begin();
        let time = jittered(WATCH_TIME);
        let error = match timeout(time + WATCH_GRACE, watch.session(method, time)).await {
            Ok(result) => result.err(),
            Err(_) => Some(ApiError::Transport(
                "the watch did not end when it should have ended".into(),
            )),
        };
        if watch.time_up() > GOOD_WATCH {
            pace.reset();
        }
        match &error {
            Some(error) if method == ListMethod::Streaming && error.refuses_streaming_list() => {
                api.fall_back_to(ListMethod::ListThenWatch);
                continue;
            }
            Some(ApiError::IncompleteStreamingList(_)) if method == ListMethod::Streaming => {
                api.fall_back_to(ListMethod::ListThenConfirmedWatch);
                // The connection may be what holds the list back.
                api.credentials.reconnect();
                failed_restarts.inc();
                if watch.end(error).await.is_err() {
                    return;
                }
                continue;
            }
            Some(_) => failed_restarts.inc(),
            None => clean_restarts.inc(),
        };
        let refused = error.as_ref().is_some_and(ApiError::refuses_credentials);
        let renewed = api.renewed();
        let asked = error.as_ref().and_then(ApiError::retry_after);
        let wait = pace.wait(asked.map_or(Duration::ZERO, jittered));
        // The known objects get out of date during a long wait.
        let often = || ApiError::Transport("the watch ends too often".into());
        let error = error.or_else(|| (wait.time > CLEAN_WAIT).then(often));
        if watch.end(error).await.is_err() {
            return;
        }
        tokio::select! {
            () = pace.pause(wait) => {}
            () = renewed, if refused => {}
        }
    }
}

/// The waits between watches.
struct Pace {
    backoff: Backoff,
    /// Whether a taint waits for the API server alone.
    urgent: watch::Receiver<bool>,
    /// The same, when the last watch began.
    was_urgent: bool,
    /// Whether a wait of this outage was already cut short. A gate that flaps must not cut short each of them.
    hurried: bool,
}

struct Wait {
    time: Duration,
    can_be_cut_short: bool,
}

impl Pace {
    fn new(urgent: watch::Receiver<bool>) -> Self {
        Self {
            backoff: Backoff::new(BACKOFF_BASE),
            urgent,
            was_urgent: false,
            hurried: false,
        }
    }

    fn begin(&mut self) {
        self.was_urgent = *self.urgent.borrow_and_update();
    }

    fn reset(&mut self) {
        self.backoff.reset();
        self.hurried = false;
    }

    fn hurry(&mut self) {
        self.backoff.reset();
        self.hurried = true;
    }

    /// The wait after a watch. The server asked for `asked` at least.
    fn wait(&mut self, asked: Duration) -> Wait {
        let is_urgent = *self.urgent.borrow_and_update();
        if is_urgent && !self.was_urgent && !self.hurried {
            // The taint came to wait during a try, so there was no wait to cut short.
            self.hurry();
        }
        let cap = if is_urgent {
            URGENT_BACKOFF_CAP
        } else {
            BACKOFF_CAP
        };
        let time = self.backoff.next(cap).max(asked);
        Wait {
            time,
            can_be_cut_short: !is_urgent && asked.is_zero() && time > SHORT_WAIT,
        }
    }

    /// Returns after the wait, or earlier if a taint begins to wait for the API server during it.
    async fn pause(&mut self, wait: Wait) {
        let resume_at = Instant::now() + wait.time;
        tokio::select! {
            () = sleep_until(resume_at) => return,
            Ok(_) = self.urgent.wait_for(|urgent| *urgent), if wait.can_be_cut_short => {}
        }
        if self.hurried {
            sleep_until(resume_at.min(Instant::now() + URGENT_BACKOFF_CAP)).await;
        } else {
            self.hurry();
        }
    }
}

#[cfg(test)]
mod tests;
