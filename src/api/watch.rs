//! A watch of some objects, for ever.
//!
//! Written here rather than taken from kube-runtime, whose watcher reconnects without any wait after a clean end, does
//! not fall back where streaming lists are refused, asks for `resourceVersion=0` (on a server that lags, the past),
//! and has a backoff that cannot be reset from outside.

mod session;

use std::time::Duration;

use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, sleep_until, timeout};

use super::object::Object;
use super::{ApiError, ApiServer};
use crate::backoff::{Backoff, jittered};
use session::Watch;

/// How long the server should keep a watch open, and up to half as long again, so that nodes whose watches began
/// together do not renew them together. Shorter costs requests, longer delays the fallback for a connection that neither
/// PING nor keep-alive shows dead.
const WATCH_TIME: Duration = Duration::from_mins(8);
/// What the server may be late with the end.
const WATCH_GRACE: Duration = Duration::from_secs(30);
const BACKOFF_BASE: Duration = Duration::from_millis(500);
const BACKOFF_CAP: Duration = Duration::from_secs(30);
/// The cap while a taint waits only for the API server.
const URGENT_BACKOFF_CAP: Duration = Duration::from_secs(5);
/// Longest wait after a clean end during which what is known still counts as up to date.
const CLEAN_WAIT: Duration = Duration::from_secs(1);
/// How long after a clean end what is known counts as up to date while the next watch has not told all. A healthy server
/// needs some milliseconds after the wait; a renewal in good order must not close gates.
const CLEAN_GAP: Duration = Duration::from_secs(2);
/// A shorter wait than this is not cut short: its jitter keeps nodes that lost the server together apart.
const SHORT_WAIT: Duration = Duration::from_secs(1);
/// A watch that was up for so long was a good one: the next failure starts the backoff afresh.
const GOOD_WATCH: Duration = Duration::from_secs(10);

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
pub enum WatchUpdate<T> {
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
    /// It ended in good order, but the next one has not told all yet: what is known may be out of date.
    Outdated,
}

/// Watches `collection` for ever. `urgent` says whether a taint waits only for the API server: turning true, it
/// ends a wait and starts the backoff afresh. Where the credentials were refused, other credentials end the wait too.
/// Returns when nobody listens to `news` any more.
pub async fn run<T: Object>(
    api: &ApiServer,
    collection: Collection,
    news: mpsc::Sender<WatchUpdate<T>>,
    urgent: watch::Receiver<bool>,
) {
    let restarts = api.traffic.restarts(&collection.path);
    let mut watch = Watch::new(api, collection, news);
    let mut pace = Pace::new(urgent);
    loop {
        let listed = api.lists();
        pace.begin();
        let time = jittered(WATCH_TIME);
        let error = match timeout(time + WATCH_GRACE, watch.session(time)).await {
            Ok(Ok(())) => None,
            Ok(Err(error)) => Some(error),
            Err(_) => Some(ApiError::Transport("the watch outlived its time".into())),
        };
        if watch.time_up() > GOOD_WATCH {
            pace.start_afresh();
        }
        if !listed && error.as_ref().is_some_and(refuses_streaming) {
            api.list_from_now_on();
            continue;
        }
        if !listed && matches!(error, Some(ApiError::Unfinished(_))) {
            // Remembered like the refusal: whatever is in the way lasts, and a list costs little. The connection is not
            // used again: it may be what is silent.
            api.list_from_now_on();
            api.doubt_from_now_on();
            api.credentials.connect_anew();
            restarts.failed.inc();
            if watch.end(error).await.is_err() {
                return;
            }
            continue;
        }
        let refused = error.as_ref().is_some_and(ApiError::refuses_credentials);
        let renewed = api.renewed();
        let asked = error.as_ref().and_then(ApiError::retry_after);
        let wait = pace.wait(asked.map_or(Duration::ZERO, jittered));
        let restarts = error.as_ref().map_or(&restarts.ended, |_| &restarts.failed);
        restarts.inc();
        // What is known is not kept up to date meanwhile.
        let often = || ApiError::Transport("the watch ends again and again".into());
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

/// When to watch again.
struct Pace {
    backoff: Backoff,
    /// Whether a taint waits only for the API server.
    urgent: watch::Receiver<bool>,
    /// Whether one did when the last watch began.
    was_urgent: bool,
    /// Whether this outage has been cut short once: a gate that flaps must not do so each time.
    hurried: bool,
}

/// From one watch to the next.
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

    /// A watch begins.
    fn begin(&mut self) {
        self.was_urgent = *self.urgent.borrow_and_update();
    }

    /// The watch was a good one.
    fn start_afresh(&mut self) {
        self.backoff.reset();
        self.hurried = false;
    }

    fn hurry(&mut self) {
        self.backoff.reset();
        self.hurried = true;
    }

    /// The watch has ended. `asked`: how long the server wants to be left alone.
    fn wait(&mut self, asked: Duration) -> Wait {
        let is_urgent = *self.urgent.borrow_and_update();
        if is_urgent && !self.was_urgent && !self.hurried {
            // There was no wait to end: a try was under way.
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

    /// Returns after the wait, or earlier if a taint comes to wait for the API server meanwhile.
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

/// Whether the server does not do streaming lists: a 422 that names the parameter.
fn refuses_streaming(error: &ApiError) -> bool {
    matches!(error, ApiError::Refused { code: 422, message, .. } if message.contains("sendInitialEvents"))
}

#[cfg(test)]
mod tests;
