//! Named assertions.

use std::sync::atomic::{AtomicUsize, Ordering};

/// Counts the assertions of a scenario.
#[derive(Default)]
pub(crate) struct Checks {
    good: AtomicUsize,
    failed: AtomicUsize,
}

impl Checks {
    /// Prints whether the sentence is true. The scenario goes on if it is not.
    pub(crate) fn expect(&self, sentence: &str, holds: bool) {
        let (count, word) = if holds {
            (&self.good, "ok")
        } else {
            (&self.failed, "FAILED")
        };
        count.fetch_add(1, Ordering::Relaxed);
        println!("{word:<7} {sentence}");
    }

    /// Whether there were assertions, and none failed.
    pub(crate) fn all_good(&self) -> bool {
        self.failed.load(Ordering::Relaxed) == 0 && self.good.load(Ordering::Relaxed) > 0
    }
}
