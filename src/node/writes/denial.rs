//! When to try again what the server does not allow.

use std::time::{Duration, Instant};

use crate::backoff::jittered;

/// A denial is somebody's decision, and lasts. The wait between two tries at a denied taint doubles from the first to the
/// second, with jitter on top: in the end there is at most one try a minute.
pub(super) const DENIED_BASE: Duration = Duration::from_secs(1);
pub(super) const DENIED_CAP: Duration = Duration::from_mins(1);

/// A step that the server refused.
#[derive(Debug)]
pub(super) struct Denial {
    /// The [kind](crate::rate_limit::kind) of the message that was reported last; empty if none was.
    pub(super) told: String,
    pub(super) until: Instant,
    /// The next wait.
    wait: Duration,
}

impl Denial {
    pub(super) fn new(now: Instant) -> Self {
        Self {
            told: String::new(),
            until: now,
            wait: DENIED_BASE,
        }
    }

    pub(super) fn postpone(&mut self, now: Instant) {
        self.until = now + jittered(self.wait);
        self.wait = (self.wait * 2).min(DENIED_CAP);
    }
}
