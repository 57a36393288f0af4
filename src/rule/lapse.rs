//! Whether a published `True` has become untrue, even if that was never written. Pure.

use std::time::Instant;

use super::publication::UNKNOWN_GRACE;
use crate::gate::State;

/// A write can fail, or wait for its turn, for longer than a gate is closed. So the Node may still have a `True` that was
/// wrong for a while.
#[derive(Debug, Default)]
pub(super) struct Lapse {
    unknown_since: Option<Instant>,
    has_lapsed: bool,
}

impl Lapse {
    pub(super) fn observe(&mut self, now: Instant, gates: State) {
        let since = self.unknown_since.take();
        let was_long_unknown = since.is_some_and(|since| since + UNKNOWN_GRACE <= now);
        self.has_lapsed |= gates == State::Closed || was_long_unknown;
        if gates == State::Unknown {
            self.unknown_since = since.or(Some(now));
        }
    }

    /// Every gate has been open for `stableFor`.
    pub(super) fn end(&mut self) {
        self.has_lapsed = false;
    }

    pub(super) fn has_lapsed(&self) -> bool {
        self.has_lapsed
    }
}
