//! A token bucket: how often something may be done that others can provoke. Pure.

use std::time::{Duration, Instant};

/// So much at once, then one at a time.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TokenBucket {
    burst: u32,
    refill: Duration,
    /// When the bucket will be full again; each token taken moves this by `refill`.
    full_at: Option<Instant>,
}

impl TokenBucket {
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

/// Lets through so much in a [`WINDOW`](Self::WINDOW) and no more, such as what somebody else makes happen.
#[derive(Debug, Clone, Default)]
pub(crate) struct Allowance(Option<(Instant, u32)>);

impl Allowance {
    const WINDOW: Duration = Duration::from_mins(1);
    const MOST: u32 = 10;

    /// Whether there is room for one more.
    pub(crate) fn take(&mut self, now: Instant) -> bool {
        let fresh = |(start, _): &(Instant, u32)| now.duration_since(*start) < Self::WINDOW;
        let (start, count) = self.0.filter(fresh).unwrap_or((now, 0));
        self.0 = Some((start, count.saturating_add(1)));
        count < Self::MOST
    }
}

/// Keeps a failure that repeats itself from filling the log.
#[derive(Debug, Default)]
pub(crate) struct Repetition(Option<(String, Instant)>);

impl Repetition {
    /// The same message is worth a line only so often.
    const PERIOD: Duration = Duration::from_mins(1);

    /// Whether `message` is worth a line: it is another one than the last, or that was long ago.
    pub(crate) fn is_news(&mut self, now: Instant, message: &str) -> bool {
        let news = self
            .0
            .as_ref()
            .is_none_or(|(last, told)| last != message || now - *told >= Self::PERIOD);
        if news {
            self.0 = Some((message.to_owned(), now));
        }
        news
    }

    /// It is over: the next failure is news. Gives whether there was one.
    pub(crate) fn end(&mut self) -> bool {
        self.0.take().is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_allowance_is_used_up_and_comes_back_with_the_next_window() {
        let start = Instant::now();
        let mut allowance = Allowance::default();
        let taken = (0..100).filter(|_| allowance.take(start)).count();
        assert_eq!(taken, 10);
        assert!(!allowance.take(start + Duration::from_secs(59)));
        assert!(allowance.take(start + Duration::from_mins(1)));
    }

    #[test]
    fn a_message_that_repeats_is_news_once_a_minute_and_again_after_it_was_over() {
        let start = Instant::now();
        let mut repetition = Repetition::default();
        assert!(repetition.is_news(start, "refused"));
        assert!(!repetition.is_news(start + Duration::from_secs(59), "refused"));
        assert!(repetition.is_news(start + Duration::from_mins(1), "refused"));
        assert!(repetition.is_news(start + Duration::from_secs(61), "timed out"));
        assert!(repetition.end());
        assert!(!repetition.end());
        assert!(repetition.is_news(start + Duration::from_secs(62), "timed out"));
    }
}
