//! What the server does not allow, and when it is asked again.

use std::time::{Duration, Instant};

use crate::backoff::jittered;

/// A denial is somebody's decision, and lasts: the wait between tries at a denied taint doubles from the first to the
/// second. Jitter goes on top, so that there is no more than one try a minute in the end.
pub(super) const DENIED_BASE: Duration = Duration::from_secs(1);
pub(super) const DENIED_CAP: Duration = Duration::from_mins(1);

/// A step that the server refused.
#[derive(Debug)]
pub(super) struct Denial {
    /// The refusal; empty while it is only known that a patch of several was refused.
    pub(super) message: String,
    pub(super) until: Instant,
    /// The next wait.
    wait: Duration,
}

impl Denial {
    pub(super) fn new(now: Instant) -> Self {
        Self {
            message: String::new(),
            until: now,
            wait: DENIED_BASE,
        }
    }

    pub(super) fn postpone(&mut self, now: Instant) {
        self.until = now + jittered(self.wait);
        self.wait = (self.wait * 2).min(DENIED_CAP);
    }
}
