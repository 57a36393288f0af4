//! For how long the Node has had the taint, and what to report of that. Pure.

use std::time::{Duration, Instant};

use super::RuleEvent;
use crate::config::Deadline;

/// A wait is long after this time, or after a tenth of the deadline if that is less.
const LONG_WAIT: Duration = Duration::from_mins(1);

#[derive(Debug, Default)]
pub(super) struct TaintPresence {
    /// When the taint was first seen, since it was last absent.
    since: Option<Instant>,
    /// Whether the deadline has passed.
    overdue: bool,
    deadline_reported: bool,
    /// Whether the long wait has been reported, by itself or with the deadline.
    wait_reported: bool,
}

impl TaintPresence {
    pub(super) fn begin(&mut self, now: Instant) {
        *self = Self {
            since: Some(now),
            ..Self::default()
        };
    }

    pub(super) fn end(&mut self) {
        *self = Self::default();
    }

    pub(super) fn since(&self) -> Option<Instant> {
        self.since
    }

    pub(super) fn is_overdue(&self) -> bool {
        self.overdue
    }

    /// The rule has another deadline, which is reported when it passes.
    pub(super) fn forget_deadline(&mut self) {
        self.overdue = false;
        self.deadline_reported = false;
    }

    pub(super) fn deadline_at(&self, deadline: Deadline) -> Option<Instant> {
        self.since.map(|since| since + deadline.after)
    }

    pub(super) fn update_overdue(&mut self, now: Instant, deadline: Deadline) {
        self.overdue = self.deadline_at(deadline).is_some_and(|at| at <= now);
        self.deadline_reported &= self.overdue;
    }

    /// When to report next that the taint has been there for long. `waits`: the rule waits for something other than time.
    pub(super) fn report_at(&self, deadline: Deadline, waits: bool) -> Option<Instant> {
        let times = [self.deadline_due(deadline), self.wait_due(deadline, waits)];
        times.into_iter().flatten().min()
    }

    /// What there is to report now.
    pub(super) fn report(
        &mut self,
        now: Instant,
        deadline: Deadline,
        waits: bool,
    ) -> Option<RuleEvent> {
        let is_due = |at: Option<Instant>| at.is_some_and(|at| at <= now);
        if is_due(self.deadline_due(deadline)) {
            (self.deadline_reported, self.wait_reported) = (true, true);
            let Deadline { after, action } = deadline;
            return Some(RuleEvent::Deadline { after, action });
        }
        is_due(self.wait_due(deadline, waits)).then(|| {
            self.wait_reported = true;
            RuleEvent::LongWait
        })
    }

    fn deadline_due(&self, deadline: Deadline) -> Option<Instant> {
        let deadline_at = self.deadline_at(deadline);
        deadline_at.filter(|_| !self.deadline_reported)
    }

    fn wait_due(&self, deadline: Deadline, waits: bool) -> Option<Instant> {
        let since = self.since.filter(|_| waits && !self.wait_reported)?;
        Some(since + LONG_WAIT.min(deadline.after / 10))
    }
}
