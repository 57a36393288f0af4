//! How often the agent does what others can provoke: writes, Events, log lines. Pure.

use std::time::{Duration, Instant};

/// Allows a burst, and after that one use in each refill period.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TokenBucket {
    burst: u32,
    refill: Duration,
    /// When the bucket is full again. Each token taken moves this by `refill`.
    full_at: Option<Instant>,
}

impl TokenBucket {
    /// For writes to the Node: somebody who undoes them is followed at full speed only so often.
    pub(crate) const WRITES: Self = Self::new(5, Duration::from_secs(10));
    /// For log lines about something that can flap.
    pub(crate) const LOG_LINES: Self = Self::new(10, Duration::from_mins(1));

    /// `burst` tokens, at least one, and one more in each `refill`.
    pub(crate) const fn new(burst: u32, refill: Duration) -> Self {
        Self {
            burst,
            refill,
            full_at: None,
        }
    }

    /// When the next token is there; `None` if there is one now.
    pub(crate) fn next_at(&self, now: Instant) -> Option<Instant> {
        let next = self.full_at?.checked_sub(self.refill * (self.burst - 1))?;
        (next > now).then_some(next)
    }

    pub(crate) fn take(&mut self, now: Instant) {
        self.full_at = Some(self.full_at.map_or(now, |full_at| full_at.max(now)) + self.refill);
    }

    /// Takes a token if there is one, and returns whether there was.
    pub(crate) fn try_take(&mut self, now: Instant) -> bool {
        let available = self.next_at(now).is_none();
        if available {
            self.take(now);
        }
        available
    }

    pub(crate) fn is_full(&self, now: Instant) -> bool {
        self.full_at.is_none_or(|full_at| full_at <= now)
    }
}

/// Keeps a failure that repeats from filling the log.
#[derive(Debug, Default)]
pub(crate) struct RepeatFilter(Option<(String, Instant)>);

impl RepeatFilter {
    /// The same message gets one line in this time.
    const PERIOD: Duration = Duration::from_mins(1);

    /// Whether to log `message`: it differs from the last one, or the last line is old.
    pub(crate) fn should_log(&mut self, now: Instant, message: &str) -> bool {
        let should_log = self
            .0
            .as_ref()
            .is_none_or(|(last, logged_at)| last != message || now - *logged_at >= Self::PERIOD);
        if should_log {
            self.0 = Some((message.to_owned(), now));
        }
        should_log
    }

    /// Ends the failure, so that the next one is logged. Returns whether there was one.
    pub(crate) fn end(&mut self) -> bool {
        self.0.take().is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_used_up_at_once_and_come_back_one_in_each_refill_period() {
        let start = Instant::now();
        let mut tokens = TokenBucket::LOG_LINES;
        let taken = (0..100).filter(|_| tokens.try_take(start)).count();
        assert_eq!(taken, 10);
        assert!(!tokens.try_take(start + Duration::from_secs(59)));
        assert!(tokens.try_take(start + Duration::from_mins(1)));
        assert!(!tokens.try_take(start + Duration::from_mins(1)));
    }

    #[test]
    fn a_message_that_repeats_is_logged_once_a_minute_and_again_after_the_failure_ended() {
        let start = Instant::now();
        let mut failure = RepeatFilter::default();
        assert!(failure.should_log(start, "refused"));
        assert!(!failure.should_log(start + Duration::from_secs(59), "refused"));
        assert!(failure.should_log(start + Duration::from_mins(1), "refused"));
        assert!(failure.should_log(start + Duration::from_secs(61), "timed out"));
        assert!(failure.end());
        assert!(!failure.end());
        assert!(failure.should_log(start + Duration::from_secs(62), "timed out"));
    }
}
