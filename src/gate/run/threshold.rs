//! How many answers in a row change a gate's state. Pure.

use crate::gate::Outcome;

/// Counts answers as the kubelet does (pkg/kubelet/prober/worker.go, `doProbe`): a result that falls short of its
/// threshold leaves the state as it is, and a different result starts the count again at 1.
#[derive(Debug)]
pub(super) struct Threshold {
    success: u32,
    failure: u32,
    in_a_row: u32,
    last_open: Option<bool>,
    outcome: Outcome,
}

impl Threshold {
    /// `success` and `failure` are `successThreshold` and `failureThreshold`, each at least 1.
    pub(super) fn new(success: u32, failure: u32) -> Self {
        Self {
            success,
            failure,
            in_a_row: 0,
            last_open: None,
            outcome: Outcome::Unevaluated,
        }
    }

    /// Records an answer between two periods, and returns whether it counts. Only the first of a run counts: a burst of
    /// file events does not show that a state lasts.
    pub(super) fn record_early(&mut self, answer: Outcome) -> bool {
        let counts = answer.is_unknown() || self.last_open != Some(answer.is_open());
        if counts {
            self.record(answer);
        } else if !answer.is_open() && !self.outcome.is_open() {
            self.outcome = answer;
        }
        counts
    }

    pub(super) fn outcome(&self) -> &Outcome {
        &self.outcome
    }

    /// Records an answer. `Unknown` replaces the outcome at once and starts both counts again.
    pub(super) fn record(&mut self, answer: Outcome) {
        if answer.is_unknown() {
            self.last_open = None;
            self.outcome = answer;
            return;
        }
        let open = answer.is_open();
        if self.last_open.replace(open) != Some(open) {
            self.in_a_row = 0;
        }
        self.in_a_row = self.in_a_row.saturating_add(1);
        let needed = if open { self.success } else { self.failure };
        if self.in_a_row >= needed {
            self.outcome = answer;
        } else if !self.outcome.is_open() {
            // Still not open: the reason is the latest, with the count of successes.
            let message = match answer {
                Outcome::Open(seen) => {
                    format!("{} of {needed} successes in a row: {seen}", self.in_a_row)
                }
                other => other.message().to_owned(),
            };
            self.outcome = Outcome::Closed(message);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn states(success: u32, failure: u32, answers: &str) -> String {
        let mut threshold = Threshold::new(success, failure);
        answers
            .chars()
            .map(|answer| {
                threshold.record(match answer {
                    'o' => Outcome::Open(String::new()),
                    'c' => Outcome::Closed(String::new()),
                    _ => Outcome::Unknown(String::new()),
                });
                threshold.outcome().state().as_str().chars().next().unwrap()
            })
            .collect()
    }

    #[test]
    fn successes_open_only_when_there_are_enough_in_a_row() {
        assert_eq!(states(3, 1, "oocooo"), "ccccco");
    }

    #[test]
    fn failures_close_only_when_there_are_enough_in_a_row() {
        assert_eq!(states(1, 3, "occoccc"), "ooooooc");
    }

    #[test]
    fn a_burst_of_events_counts_once() {
        let open = || Outcome::Open(String::new());
        let mut threshold = Threshold::new(3, 1);
        assert!(threshold.record_early(open()));
        for _ in 0..10 {
            assert!(!threshold.record_early(open()));
        }
        threshold.record(open());
        assert!(!threshold.outcome().is_open());
        threshold.record(open());
        assert!(
            threshold.outcome().is_open(),
            "three periods, three successes"
        );
        assert!(threshold.record_early(Outcome::Closed("gone".into())));
        assert_eq!(
            threshold.outcome(),
            &Outcome::Closed("gone".into()),
            "a failure counts at once"
        );
        assert!(!threshold.record_early(Outcome::Closed("elsewhere".into())));
        assert_eq!(
            threshold.outcome().message(),
            "elsewhere",
            "the reason is kept up to date"
        );
    }

    #[test]
    fn unknown_counts_at_once_and_starts_both_counts_again() {
        assert_eq!(states(2, 1, "oouoo"), "couco");
        assert_eq!(states(1, 2, "ocuc"), "oouc");
    }
}
