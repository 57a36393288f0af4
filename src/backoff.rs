//! Waits that grow with each failure, with jitter, up to a cap.

use std::hash::{BuildHasher, RandomState};
use std::time::Duration;

/// Doubles the wait after each failure. Each wait is drawn from the upper half of its step, so that nodes that failed
/// together do not come back together.
#[derive(Debug, Clone)]
pub(crate) struct Backoff {
    base: Duration,
    failures: u32,
}

impl Backoff {
    /// `base` is the longest first wait.
    pub(crate) const fn new(base: Duration) -> Self {
        Self { base, failures: 0 }
    }

    /// How long to wait after one more failure, at most `cap`.
    pub(crate) fn next(&mut self, cap: Duration) -> Duration {
        let factor = 2_u32.saturating_pow(self.failures);
        let step = self.base.saturating_mul(factor).min(cap);
        self.failures = self.failures.saturating_add(1);
        step.mul_f64(0.5 + random_fraction() / 2.0)
    }

    /// Call this after a success: the next failure waits `base` again.
    pub(crate) fn reset(&mut self) {
        self.failures = 0;
    }
}

/// `wait` and up to half as much again.
pub(crate) fn jittered(wait: Duration) -> Duration {
    wait.mul_f64(1.0 + random_fraction() / 2.0)
}

/// From 0 to 1. The standard library's per-process hash keys are random, which is all that jitter needs.
fn random_fraction() -> f64 {
    let random = RandomState::new().hash_one(());
    f64::from(u32::try_from(random >> 32).unwrap_or(0)) / f64::from(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_up_to_the_cap_and_start_afresh_after_a_reset() {
        let cap = Duration::from_secs(5);
        let mut backoff = Backoff::new(Duration::from_millis(10));
        for step in [10, 20, 40, 80, 160, 320, 640, 1280, 2560, 5000, 5000] {
            let wait = backoff.next(cap);
            let step = Duration::from_millis(step);
            assert!(
                step / 2 <= wait && wait <= step,
                "{wait:?} is not in the upper half of {step:?}"
            );
        }
        for _ in 0..100 {
            assert!(backoff.next(cap) <= cap);
        }
        backoff.reset();
        assert!(backoff.next(cap) <= Duration::from_millis(10));
    }

    #[test]
    fn two_nodes_that_fail_together_do_not_wait_equally_long() {
        let wait = || Backoff::new(Duration::from_hours(1)).next(Duration::from_hours(1));
        assert_ne!(wait(), wait());
    }
}
