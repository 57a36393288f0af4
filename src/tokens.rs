//! How often a write is repeated that somebody, or something, makes necessary again and again. Pure.

use std::time::{Duration, Instant};

/// Writes at once before somebody who undoes them is no longer followed at full speed.
const BURST: u32 = 5;
/// Then one write in this time.
const REFILL: Duration = Duration::from_secs(10);

/// [`BURST`] writes at once, then one in [`REFILL`].
#[derive(Debug, Default)]
pub(crate) struct Tokens {
    /// When the bucket will be full again; each token taken moves this by [`REFILL`].
    full_at: Option<Instant>,
}

impl Tokens {
    /// When there will be a token, unless there is one now.
    pub(crate) fn next_at(&self, now: Instant) -> Option<Instant> {
        let next = self.full_at?.checked_sub(REFILL * (BURST - 1))?;
        (next > now).then_some(next)
    }

    pub(crate) fn take(&mut self, now: Instant) {
        self.full_at = Some(self.full_at.map_or(now, |full_at| full_at.max(now)) + REFILL);
    }
}
