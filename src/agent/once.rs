//! `untaint run --once`: when it is done.

use std::time::{Duration, Instant};

use super::Agent;
use crate::api::ApiError;
use crate::backoff::{Backoff, jittered};
use crate::node::self_check::SelfCheck;
use crate::node::view::NodeView;
use crate::node::{self, Answer, Next};

/// The longest wait between two last looks that fail.
const RETRY_CAP: Duration = Duration::from_secs(5);
const RETRY_BASE: Duration = Duration::from_secs(1);

/// Waits until there has been nothing left to do for `settle`.
pub(super) struct Once {
    settle: Duration,
    settled_at: Option<Instant>,
    /// Since the last look failed.
    not_before: Option<Instant>,
    /// Why it failed.
    failure: Option<String>,
    backoff: Backoff,
}

impl Once {
    pub(super) fn new(settle: Duration) -> Self {
        Self {
            settle,
            settled_at: None,
            not_before: None,
            failure: None,
            backoff: Backoff::new(RETRY_BASE),
        }
    }

    /// `done`: there is nothing left to do with the Node as it is known.
    fn step(&mut self, now: Instant, done: bool) {
        if !done {
            self.backoff.reset();
            (self.not_before, self.failure) = (None, None);
        }
        self.settled_at = done.then(|| self.settled_at.unwrap_or(now + self.settle));
    }

    /// When the last look is due.
    fn due_at(&self) -> Option<Instant> {
        self.settled_at
            .map(|at| self.not_before.unwrap_or(at).max(at))
    }

    fn is_due(&self, now: Instant) -> bool {
        self.due_at().is_some_and(|due_at| due_at <= now)
    }

    /// The last look failed: look again, but not before the server allows it.
    fn postpone(&mut self, now: Instant, error: &ApiError) {
        let asked = error.retry_after().unwrap_or_default();
        let wait = self.backoff.next(RETRY_CAP).max(jittered(asked));
        self.not_before = Some(now + wait);
        self.failure = Some(error.to_string());
    }

    /// Ends the wait after a failure.
    pub(super) fn retry_now(&mut self) {
        self.not_before = None;
    }
}

impl Agent<'_> {
    pub(super) fn step_once(&mut self, now: Instant) {
        let node = self.latest.get();
        let is_settled = node.is_some_and(|node| self.unsettled(node).is_none());
        let is_done = is_settled && self.are_rules_done();
        if !is_done {
            // A look under way may be older than what there is to do now.
            self.slots.last_look.cancel_unless(|_| false);
        }
        if let Some(once) = &mut self.once {
            once.step(now, is_done);
        }
    }

    fn are_rules_done(&self) -> bool {
        self.rules.iter().all(|rule| rule.state.is_done())
    }

    /// Why more is to be done with the Node, although every rule is done.
    fn unsettled(&self, node: &NodeView) -> Option<&'static str> {
        let check = self.self_check.as_ref();
        let added_by_check = check.and_then(SelfCheck::taint_to_remove);
        if node.may_be_tainted_by_karpenter() {
            Some("Karpenter has not registered the node yet")
        } else if added_by_check.is_some_and(|taint| node.has(taint)) {
            Some("the taint that the check of the policy added is not removed yet")
        } else {
            None
        }
    }

    /// What `run --once` waits for when every rule is done; `None` while one is not.
    pub(super) fn once_waits_for(&self) -> Option<String> {
        let once = self.once.as_ref().filter(|_| self.are_rules_done())?;
        let unsettled = self.unsettled(self.latest.get()?);
        Some(match (unsettled, &once.failure) {
            (Some(unsettled), _) => unsettled.to_owned(),
            (None, Some(failure)) => format!("the last read of the Node, which fails: {failure}"),
            (None, None) => "the last read of the Node, which comes after --settle".to_owned(),
        })
    }

    /// Reads the Node once more when everything is done, unless a change is under way.
    pub(super) fn send_last_look(&mut self, now: Instant) {
        if !self.slots.last_look.is_idle() {
            return;
        }
        let due_at = self.once.as_ref().and_then(Once::due_at);
        let due_at = due_at.filter(|_| self.slots.taints.is_idle());
        let next = match self.latest.get().zip(due_at) {
            Some((node, due_at)) if due_at <= now => Next::Send(node.metadata.uid.clone()),
            later => Next::Wait(later.map(|(_, due_at)| due_at)),
        };
        let (api, name) = (self.api, &self.options.node_name);
        self.slots
            .last_look
            .send_or_wait(next, |_| node::get(api, name));
    }

    /// Returns whether `run --once` is done: the Node, as it is now, leaves nothing to do.
    pub(super) fn last_look_answered(&mut self, uid: &str, answer: Answer) -> bool {
        let now = Instant::now();
        let is_read = answer.is_ok();
        if let (Some(once), Err(error)) = (&mut self.once, &answer) {
            once.postpone(now, error);
            self.connection.read_failed(error);
        }
        self.observe_answer(uid, answer);
        if is_read {
            self.step(now);
        }
        is_read && self.once.as_ref().is_some_and(|once| once.is_due(now))
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
    fn other_credentials_end_the_wait_after_a_failed_look_and_not_the_settle_time() {
        let start = Instant::now();
        let second = Duration::from_secs(1);
        let mut once = Once::new(second);
        once.step(start, true);
        once.postpone(start + second, &refused(401, 10));
        assert!(!once.is_due(start + second));
        once.retry_now();
        assert!(once.is_due(start + second));

        once.postpone(start + second, &refused(401, 10));
        once.step(start + second, false);
        once.step(start + second, true);
        once.retry_now();
        assert_eq!(once.due_at(), Some(start + 2 * second));
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
