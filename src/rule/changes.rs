//! What the answers to the changes of a rule's own taint mean. Pure.

use std::time::{Duration, Instant};

use k8s_openapi::api::core::v1::Taint;

use super::{Decision, RuleEvent, RuleState};
use crate::api::ApiError;
use crate::gate::State;
use crate::node::patch::{Action, Change, Step};
use crate::node::view::NodeView;
use crate::node::writes::Denied;

impl RuleState {
    /// Whether `change` changes the rule's taint. While the change is under way, the rule must not decide: only the answer
    /// shows who changed the taint.
    pub fn is_changed_by(&self, change: &Change) -> bool {
        let mut taints = change.taints.iter();
        taints.any(|taint| self.may_be_own(change.action, taint))
    }

    fn may_be_own(&self, action: Action, taint: &Taint) -> bool {
        let is_possible = match action {
            Action::Remove => self.decision.is_tainted(),
            Action::PutBack => self.decision.is_absent(),
        };
        is_possible && self.own_taints.include(taint)
    }

    /// The server accepted `change`, and `node` is its answer.
    pub fn accepted(&mut self, now: Instant, change: &Change, node: &NodeView) -> Vec<RuleEvent> {
        let action = change.action;
        let own = change.taints.iter();
        let own = own.filter(|taint| self.may_be_own(action, taint));
        let own: Vec<_> = own.cloned().collect();
        if own.is_empty() {
            return Vec::new();
        }
        (self.unanswered, self.denied, self.failed) = (None, None, None);
        if action == Action::PutBack && self.own_taints.are_on(node) {
            self.own_taints.observe(node, false);
            self.put_back(now);
            return vec![RuleEvent::PutBack];
        }
        let since_seen = self.since_seen(now);
        let since_ready = self.since_ready(now);
        match action {
            Action::Remove => self.removed(now),
            Action::PutBack => self.put_back_undone(),
        }
        let event = |taint| match action {
            Action::Remove if !Step::new(action, &taint).is_pending(node) => RuleEvent::Removed {
                taint,
                since_seen,
                since_ready,
            },
            _ => RuleEvent::Undone { action, taint },
        };
        own.into_iter().map(event).collect()
    }

    /// It is not known whether `change` took effect.
    pub fn unanswered(&mut self, change: &Change) {
        if self.is_changed_by(change) {
            self.unanswered = Some(change.action);
        }
    }

    /// `node` was read after a change whose outcome is not known. If the change has not taken effect, it never will.
    pub fn read(&mut self, node: &NodeView) {
        let has_taint = self.own_taints.are_on(node);
        self.unanswered
            .take_if(|action| (*action == Action::Remove) == has_taint);
    }

    /// A try of `change` failed without a refusal, or the read before the next one.
    pub fn failed(&mut self, change: &Change, error: &ApiError) {
        if self.is_changed_by(change) {
            self.failed = Some(error.to_string());
        }
    }

    /// Why the last try of the change that the rule wants failed, if the server did not refuse it.
    pub fn failure(&self) -> Option<&str> {
        self.failed.as_deref()
    }

    /// The server refuses a change, or has failed to make it for some time.
    pub fn denied(&mut self, denied: &Denied) -> Option<RuleEvent> {
        self.may_be_own(denied.action, &denied.taint).then(|| {
            self.denied = Some(denied.message.clone());
            if denied.decided {
                self.failed = None;
            }
            RuleEvent::Denied(denied.clone())
        })
    }

    /// The server's message while it refuses the change that the rule wants, or has failed to make it for some time.
    pub fn denial(&self) -> Option<&str> {
        self.denied.as_deref()
    }

    /// For how long the rule has been ready for a taint that is there; `None` where it is not ready, or fails open.
    pub(super) fn since_ready(&self, now: Instant) -> Option<Duration> {
        let stable = self.stable_at().filter(|at| *at <= now)?;
        // Gates may have been open long before the Node was seen: they run while the API server is away, too.
        Some(now.duration_since(stable.max(self.seen_since()?)))
    }

    /// After the agent's own removal, the missing taint is not a removal by others.
    pub(super) fn removed(&mut self, now: Instant) {
        self.decision = Decision::Absent;
        self.taint_presence.end();
        self.retaint_timer.restart(now);
        if !self.runs_gates() {
            self.observe(now, State::Unknown);
        }
        self.tokens.take(now);
    }

    /// If others remove the taint although a gate is closed, that is their decision: the rule does not put it back again
    /// before every gate has been open.
    pub(super) fn put_back(&mut self, now: Instant) {
        self.decision = Decision::Waiting;
        self.taint_presence.begin(now);
        self.retaint_timer.disarm();
    }

    /// Something in the server has removed the taint at once. The rule respects that like a removal by others.
    pub(super) fn put_back_undone(&mut self) {
        self.decision = Decision::Absent;
        self.retaint_timer.disarm();
    }
}
