//! When `retaint` puts the taint back. Pure.
//!
//! The agent does not mark the Node when a rule was ready: a marker could remain after it is no longer true. So a Node
//! without the taint gets it back when a gate stays closed, no matter who removed it and which process saw that.

use std::time::{Duration, Instant};

use jiff::{SignedDuration, Timestamp};

use crate::boot::Boot;
use crate::gate::State;

/// A Node that is older than the boot by more than this has been through a reboot. The API server's clock dates the Node,
/// and the node's own clock dates the boot.
const CLOCK_SKEW: SignedDuration = SignedDuration::from_mins(1);

#[derive(Debug)]
pub(super) struct RetaintTimer {
    /// Since when some gate has been closed without a break.
    closed_since: Option<Instant>,
    /// Whether the taint may be put back. That happens once, until every gate has been open again.
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

    /// Counts the time from `now`.
    pub(super) fn restart(&mut self, now: Instant) {
        self.closed_since = self.closed_since.map(|_| now);
    }

    /// Nobody saw the gates for this long until `now`, which does not count.
    pub(super) fn skip(&mut self, now: Instant, unseen: Duration) {
        self.closed_since = self.closed_since.map(|since| (since + unseen).min(now));
    }

    /// The Node is no longer as the boot left it.
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

    /// When the taint goes back on a Node that was `created` then; `None` while no gate is closed.
    ///
    /// A gate may close for a moment when a component restarts, hence `after`. A reboot leaves the Node without the taint
    /// (`registerWithTaints` applies to new Nodes only) while nothing runs yet: then the taint goes back at once.
    pub(super) fn due_at(&self, after: Duration, created: Option<Timestamp>) -> Option<Instant> {
        let since = self.closed_since.filter(|_| self.armed)?;
        let boot = self.boot.filter(|boot| since <= boot.until).zip(created);
        let rebooted =
            boot.is_some_and(|(boot, created)| boot.time.duration_since(created) > CLOCK_SKEW);
        Some(if rebooted { since } else { since + after })
    }
}
