//! A change that the server does not refuse, but that fails again and again.

use std::time::{Duration, Instant};

use super::Denied;
use crate::api::ApiError;
use crate::node::patch::Change;
use crate::rate_limit::kind;

/// What fails for so long is reported. Other writers, a server that restarts or one that is busy need a try or two.
pub(super) const LASTING: Duration = Duration::from_secs(10);

/// How many kinds of messages are reported. They may take turns, and a text may change in any way from one try to the next.
pub(super) const MOST_KINDS: usize = 4;

/// Tries that have failed one after the other.
#[derive(Debug)]
pub(super) struct Trouble {
    since: Instant,
    /// Of the last try.
    pub(super) change: Change,
    /// The [kinds](kind) of the messages that were reported.
    told: Vec<String>,
}

impl Trouble {
    pub(super) fn new(now: Instant, change: Change) -> Self {
        Self {
            since: now,
            change,
            told: Vec::new(),
        }
    }

    /// A try failed, or the read before the next one. Returns what is to be reported.
    pub(super) fn goes_on(&mut self, now: Instant, error: &ApiError) -> Vec<Denied> {
        // The failures of the watch show a server that cannot be reached.
        if now - self.since < LASTING || !error.is_answer() {
            return Vec::new();
        }
        let message = error.to_string();
        let kind = kind(&message);
        let first = !self.told.contains(&kind) && self.told.len() < MOST_KINDS;
        if first {
            self.told.push(kind);
        }
        let denied = |taint: &_| Denied {
            action: self.change.action,
            taint: Clone::clone(taint),
            message: message.clone(),
            first,
            decided: false,
        };
        self.change.taints.iter().map(denied).collect()
    }
}
