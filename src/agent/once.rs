//! `untaint run --once`: when it is done.

use std::time::{Duration, Instant};

use crate::api::ApiError;
use crate::backoff::{Backoff, jittered};

/// Longest wait before another last look after one that failed.
const RETRY_CAP: Duration = Duration::from_secs(5);
const RETRY_BASE: Duration = Duration::from_secs(1);

/// Waits until there has been nothing left to do for `settle`.
pub(super) struct Once {
    settle: Duration,
    due_at: Option<Instant>,
    /// Whether the last look failed because the credentials were refused.
    waits_for_credentials: bool,
    backoff: Backoff,
}

impl Once {
    pub(super) fn new(settle: Duration) -> Self {
        Self {
            settle,
            due_at: None,
            waits_for_credentials: false,
            backoff: Backoff::new(RETRY_BASE),
        }
    }

    /// `done`: there is nothing left to do with the Node as it is known.
    pub(super) fn step(&mut self, now: Instant, done: bool) {
        if !done {
            self.backoff.reset();
        }
        self.due_at = done.then(|| self.due_at.unwrap_or(now + self.settle));
    }

    /// When the last look is due.
    pub(super) fn due_at(&self) -> Option<Instant> {
        self.due_at
    }

    pub(super) fn is_due(&self, now: Instant) -> bool {
        self.due_at.is_some_and(|due_at| due_at <= now)
    }

    /// The last look failed: look again, but not before the server wants to be asked.
    pub(super) fn postpone(&mut self, now: Instant, error: &ApiError) {
        let asked = error.retry_after().unwrap_or_default();
        let wait = self.backoff.next(RETRY_CAP).max(jittered(asked));
        self.due_at = self.due_at.map(|_| now + wait);
        self.waits_for_credentials = error.refuses_credentials();
    }

    pub(super) fn waits_for_credentials(&self) -> bool {
        self.waits_for_credentials && self.due_at.is_some()
    }

    /// What waits because those before were refused is due now.
    pub(super) fn credentials_renewed(&mut self, now: Instant) {
        if std::mem::take(&mut self.waits_for_credentials) {
            self.due_at = self.due_at.map(|due_at| due_at.min(now));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_due_once_there_was_nothing_to_do_for_the_whole_settle_time() {
        let start = Instant::now();
        let second = Duration::from_secs(1);
        let mut once = Once::new(second);
        once.step(start, true);
        once.step(start + second / 2, false);
        once.step(start + second, true);
        assert!(
            !once.is_due(start + second),
            "the taint came back in between"
        );
        once.step(start + second * 2, true);
        assert!(once.is_due(start + second * 2));
    }

    #[test]
    fn a_failed_last_look_is_repeated_later_and_not_if_there_is_something_to_do_again() {
        let start = Instant::now();
        let mut once = Once::new(Duration::ZERO);
        once.step(start, true);
        once.postpone(start, &refused(503, 10));
        once.step(start, true);
        assert!(once.due_at() >= Some(start + Duration::from_secs(10)));
        once.step(start, false);
        once.postpone(start, &refused(503, 0));
        assert_eq!(once.due_at(), None);
    }

    #[test]
    fn other_credentials_end_the_wait_after_a_look_that_was_refused_for_those_before() {
        let start = Instant::now();
        for (code, is_due) in [(401, true), (503, false)] {
            let mut once = Once::new(Duration::ZERO);
            once.step(start, true);
            once.postpone(start, &refused(code, 10));
            assert_eq!(once.waits_for_credentials(), is_due);
            once.credentials_renewed(start);
            assert_eq!(once.is_due(start), is_due, "{code}");
        }
    }

    fn refused(code: u16, seconds: u64) -> ApiError {
        ApiError::Refused {
            code,
            message: "no".into(),
            detailed: false,
            retry_after: Some(Duration::from_secs(seconds)),
        }
    }
}
