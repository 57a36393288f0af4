//! For how long the taint has been there, and what is to be told of that. Pure.

use std::time::{Duration, Instant};

use crate::config::Deadline;

/// A wait of this long is told of, or of a tenth of the deadline if that is less.
const LONG_WAIT: Duration = Duration::from_mins(1);

#[derive(Debug, Default)]
pub(super) struct TaintPresence {
    /// When the taint was first seen, since it was last absent.
    since: Option<Instant>,
    /// Whether the deadline has passed.
    overdue: bool,
    /// Whether that has been told.
    overdue_told: bool,
    /// Whether it has been told that this takes long, be it by the deadline.
    told: bool,
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

    /// Another deadline is told of when it passes, whatever became of the one before.
    pub(super) fn expect_another_deadline(&mut self) {
        self.overdue = false;
        self.overdue_told = false;
    }

    pub(super) fn deadline_at(&self, deadline: Deadline) -> Option<Instant> {
        self.since.map(|since| since + deadline.after)
    }

    pub(super) fn look_at_deadline(&mut self, now: Instant, deadline: Deadline) {
        self.overdue = self.deadline_at(deadline).is_some_and(|at| at <= now);
        self.overdue_told &= self.overdue;
    }

    /// When there will be a passed deadline to tell of.
    pub(super) fn overdue_at(&self, deadline: Deadline) -> Option<Instant> {
        self.deadline_at(deadline).filter(|_| !self.overdue_told)
    }

    /// The passed deadline is told of.
    pub(super) fn tell_overdue(&mut self) {
        self.overdue_told = true;
        self.told = true;
    }

    /// When there will be a long wait to tell of.
    pub(super) fn long_at(&self, deadline: Deadline) -> Option<Instant> {
        let since = self.since.filter(|_| !self.told)?;
        Some(since + LONG_WAIT.min(deadline.after / 10))
    }

    /// The long wait is told of.
    pub(super) fn tell(&mut self) {
        self.told = true;
    }
}
