//! When a rule that was ready is so no longer, and the taint is to be put back. Pure.
//!
//! Nothing on the Node tells that a rule was ready once, and nothing is to: a marker outlives what it stands for. So a
//! Node without the taint whose gate stays closed is to have it, whoever took it off and whichever process saw it.

use std::time::{Duration, Instant};

use jiff::{SignedDuration, Timestamp};

use crate::boot::Boot;
use crate::gate::State;

/// A Node that is older than the boot by more than this has been through a reboot. The API server's clock dates the one,
/// the node's the other.
const CLOCK_SKEW: SignedDuration = SignedDuration::from_mins(1);

#[derive(Debug)]
pub(super) struct RetaintTimer {
    /// Since when some gate has been closed, without a break.
    closed_since: Option<Instant>,
    /// Whether the taint may be put back: once, until every gate has been open again.
    armed: bool,
    /// The boot that this process came up with, until every gate has been open since.
    boot: Option<Boot>,
}

impl RetaintTimer {
    pub(super) fn new(boot: Option<Boot>) -> Self {
        Self {
            closed_since: None,
            armed: true,
            boot,
        }
    }

    pub(super) fn observe(&mut self, now: Instant, gates: State) {
        let closed = gates == State::Closed;
        self.closed_since = closed.then(|| self.closed_since.unwrap_or(now));
        if gates == State::Open {
            self.forget_boot();
        }
    }

    /// What was before does not count.
    pub(super) fn begin_to_count(&mut self, now: Instant) {
        self.closed_since = self.closed_since.map(|_| now);
    }

    /// What the boot left is over.
    pub(super) fn forget_boot(&mut self) {
        self.boot = None;
    }

    /// Every gate is open.
    pub(super) fn arm(&mut self) {
        self.armed = true;
    }

    /// The taint has been put back.
    pub(super) fn disarm(&mut self) {
        self.armed = false;
    }

    /// When the taint of a Node `created` then is to be put back; `None` while no gate is closed.
    ///
    /// A gate that has been open once may close for a moment, when a component restarts. A reboot leaves the Node as it
    /// was, without the taint (`registerWithTaints` applies to new Nodes only), while nothing runs yet: no time is given.
    pub(super) fn due_at(&self, after: Duration, created: Option<Timestamp>) -> Option<Instant> {
        let since = self.closed_since.filter(|_| self.armed)?;
        let boot = self.boot.filter(|boot| since <= boot.until).zip(created);
        let rebooted =
            boot.is_some_and(|(boot, created)| boot.time.duration_since(created) > CLOCK_SKEW);
        Some(if rebooted { since } else { since + after })
    }
}
