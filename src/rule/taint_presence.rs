//! For how long the Node has had the taint, and what to report of that. Pure.

use std::time::{Duration, Instant};

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

    /// When to report the deadline, if it has not been reported.
    pub(super) fn report_deadline_at(&self, deadline: Deadline) -> Option<Instant> {
        self.deadline_at(deadline)
            .filter(|_| !self.deadline_reported)
    }

    pub(super) fn deadline_reported(&mut self) {
        self.deadline_reported = true;
        self.wait_reported = true;
    }

    /// When to report a long wait, if it has not been reported.
    pub(super) fn report_wait_at(&self, deadline: Deadline) -> Option<Instant> {
        let since = self.since.filter(|_| !self.wait_reported)?;
        Some(since + LONG_WAIT.min(deadline.after / 10))
    }

    pub(super) fn wait_reported(&mut self) {
        self.wait_reported = true;
    }
}
