//! A token bucket: how often something may be done that others can provoke. Pure.

use std::time::{Duration, Instant};

/// So much at once, then one at a time.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Tokens {
    burst: u32,
    refill: Duration,
    /// When the bucket will be full again; each token taken moves this by `refill`.
    full_at: Option<Instant>,
}

impl Tokens {
    /// For writes to the Node, before somebody who undoes them is no longer followed at full speed.
    pub(crate) const WRITES: Self = Self::new(5, Duration::from_secs(10));

    /// `burst` tokens, at least one, and another one in each `refill`.
    pub(crate) const fn new(burst: u32, refill: Duration) -> Self {
        Self {
            burst,
            refill,
            full_at: None,
        }
    }

    /// When there will be a token, unless there is one now.
    pub(crate) fn next_at(&self, now: Instant) -> Option<Instant> {
        let next = self.full_at?.checked_sub(self.refill * (self.burst - 1))?;
        (next > now).then_some(next)
    }

    pub(crate) fn take(&mut self, now: Instant) {
        self.full_at = Some(self.full_at.map_or(now, |full_at| full_at.max(now)) + self.refill);
    }

    /// Whether it is as if none had been taken.
    pub(crate) fn is_full(&self, now: Instant) -> bool {
        self.full_at.is_none_or(|full_at| full_at <= now)
    }
}
