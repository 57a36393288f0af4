//! Limits what others can make the agent do: writes, Events, log lines. Pure.

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
    /// For writes to the Node, which another client may undo without end.
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

/// Keeps a failure that repeats, or that comes and goes, from filling the log.
#[derive(Debug, Default)]
pub(crate) struct RepeatFilter {
    /// The [kinds](kind) of what was logged in the last [`Self::PERIOD`].
    logged: Vec<(String, Instant)>,
    /// Whether a line about the failure that lasts was logged.
    is_logged: bool,
}

impl RepeatFilter {
    /// Messages of the same kind get one line in this time.
    const PERIOD: Duration = Duration::from_mins(1);
    /// How many kinds get a line in this time. A text may change in any way from one try to the next.
    const KINDS: usize = 4;

    /// Whether to log `message`.
    pub(crate) fn should_log(&mut self, now: Instant, message: &str) -> bool {
        self.logged.retain(|(_, at)| now - *at < Self::PERIOD);
        let kind = kind(message);
        let is_known = self.logged.iter().any(|(logged, _)| *logged == kind);
        let should_log = !is_known && self.logged.len() < Self::KINDS;
        if should_log {
            self.logged.push((kind, now));
            self.is_logged = true;
        }
        should_log
    }

    /// Ends the failure. Returns whether a line about it was logged.
    pub(crate) fn end(&mut self) -> bool {
        std::mem::take(&mut self.is_logged)
    }
}

/// `message` without the words that have digits: times, counters, addresses, ports, ids and versions may differ each time
/// that the same thing happens.
pub(crate) fn kind(message: &str) -> String {
    let without_numbers = |word| {
        let has_digits = str::contains(word, char::is_numeric);
        if has_digits { "#" } else { word }
    };
    let words: Vec<_> = message.split_whitespace().map(without_numbers).collect();
    words.join(" ")
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
    fn a_message_that_repeats_is_logged_once_a_minute_also_if_the_failure_ends_in_between() {
        let start = Instant::now();
        let at = |seconds| start + Duration::from_secs(seconds);
        let mut failure = RepeatFilter::default();
        assert!(failure.should_log(start, "refused"));
        assert!(!failure.should_log(at(59), "refused"));
        assert!(failure.should_log(at(60), "refused"));
        assert!(failure.should_log(at(61), "timed out"));
        assert!(failure.end());
        assert!(!failure.end());
        assert!(!failure.should_log(at(62), "timed out"));
        assert!(!failure.end(), "nobody was told of its beginning");
        assert!(failure.should_log(at(121), "timed out"));
        assert!(failure.end());
    }

    /// How many lines two minutes of tries get, one a second.
    fn lines(message: impl Fn(u64) -> String) -> usize {
        let start = Instant::now();
        let mut failure = RepeatFilter::default();
        let is_logged = |second: &u64| {
            failure.should_log(start + Duration::from_secs(*second), &message(*second))
        };
        (0..120).filter(is_logged).count()
    }

    #[test]
    fn whatever_clock_or_counter_is_in_a_message_it_is_logged_once_a_minute() {
        let messages: [fn(u64) -> String; 9] = [
            |n| {
                format!(
                    "not valid before 1735000000 (UNIX), now {} (UNIX)",
                    1_734_000_000 + n
                )
            },
            |n| {
                format!(
                    "not valid before 2026-01-01T00:00:00Z, now 2025-12-31 23:5{}:{:02}",
                    n / 60,
                    n % 60
                )
            },
            |n| {
                format!(
                    "read tcp 10.0.0.7:{}->10.0.0.1:443: connection reset",
                    40_000 + n
                )
            },
            |n| format!("too old resource version: {n} ({})", n + 5),
            |n| {
                format!(
                    "429: please try again in {}.{n}s (request {:08x}-1c2d)",
                    n % 7,
                    n * 7919
                )
            },
            |n| format!("etag W/\"{n}\", attempt={n}, n\u{663}{n}"),
            |n| format!("no answer for {n} s"),
            |n| ["refused", "timed out"][(n % 2) as usize].to_owned() + " [::1]:" + &n.to_string(),
            |_| "refused".into(),
        ];
        for (index, message) in messages.into_iter().enumerate() {
            let expected = if index == 7 { 4 } else { 2 };
            assert_eq!(lines(message), expected, "{}", message(0));
        }
    }

    #[test]
    fn a_message_of_random_words_is_logged_a_few_times_a_minute() {
        let word = |n: u64| -> String {
            let letter =
                |place| char::from(b'a' + u8::try_from((n >> (4 * place)) & 15_u64).unwrap());
            (0..3).map(letter).collect()
        };
        assert_eq!(
            lines(|n| format!("denied, see {}", word(n))),
            2 * RepeatFilter::KINDS
        );
    }
}
