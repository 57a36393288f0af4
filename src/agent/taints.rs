//! Changes of taints: what is sent next, and what the answers lead to.

use std::time::Instant;

use tracing::info;

use super::Agent;
use super::rule::RuleRunner;
use super::slot::{Answer, Slot};
use crate::node;
use crate::node::patch::{Change, Wanted};
use crate::node::self_check::SelfCheck;
use crate::node::writes::{Next, WriteOutcome};

pub(super) enum TaintRequest {
    Patch(Change),
    /// A read before the next change, of the Node with this uid.
    Get(String),
}

impl Slot<'_, TaintRequest> {
    /// The change under way.
    pub(super) fn change(&self) -> Option<&Change> {
        match self.request() {
            Some(TaintRequest::Patch(change)) => Some(change),
            _ => None,
        }
    }
}

impl Agent<'_> {
    pub(super) fn send_taints(&mut self, now: Instant) {
        if !self.slots.taints.is_idle() {
            return;
        }
        self.slots.taints.wait_until(None);
        let Some(node) = self.latest.get() else {
            return;
        };
        let wanted = wanted(&self.rules, self.self_check.as_ref());
        let (api, name) = (self.api, self.node_name.clone());
        match self.writes.next(now, node, &wanted) {
            Next::Wait(until) => self.slots.taints.wait_until(until),
            Next::Get => {
                let request = TaintRequest::Get(node.metadata.uid.clone());
                let answer = async move { node::get(api, &name).await };
                self.slots.taints.send(request, answer);
            }
            Next::Patch(change) => {
                let request = TaintRequest::Patch(change.clone());
                let answer = async move { node::patch(api, &name, &change).await };
                self.slots.taints.send(request, answer);
            }
        }
    }

    pub(super) fn taints_answered(&mut self, request: &TaintRequest, answer: Answer) {
        let now = Instant::now();
        match request {
            TaintRequest::Patch(change) => {
                match (self.writes.patched(now, change, &answer), &answer) {
                    (Some(WriteOutcome::Applied), Ok(node)) => {
                        self.connection.request_succeeded();
                        for rule in &mut self.rules {
                            rule.accepted(now, change, node);
                        }
                    }
                    (Some(WriteOutcome::Unknown), _) => self.unanswered(change),
                    _ => {}
                }
                self.observe_answer(&change.uid, answer);
            }
            TaintRequest::Get(uid) => {
                let wanted = wanted(&self.rules, self.self_check.as_ref());
                let outcome = self.writes.got(now, &wanted, &answer);
                for rule in &mut self.rules {
                    if let Ok(node) = &answer {
                        rule.state.read(node);
                    }
                    if let Some(WriteOutcome::Denied {
                        action,
                        taint,
                        message,
                        first,
                    }) = &outcome
                    {
                        rule.denied(*action, taint, message, *first);
                    }
                }
                self.observe_answer(uid, answer);
            }
        }
    }

    fn unanswered(&mut self, change: &Change) {
        for rule in &mut self.rules {
            rule.state.unanswered(change);
        }
    }

    /// Nothing else is left of what a rule that is gone wanted: the agent asks the rules before every request.
    pub(super) fn cancel_unwanted_change(&mut self) {
        let wanted = wanted(&self.rules, self.self_check.as_ref());
        let canceled = self.slots.taints.cancel_unless(|request| match request {
            TaintRequest::Patch(change) => wanted.includes(change),
            TaintRequest::Get(_) => true,
        });
        if let Some(TaintRequest::Patch(change)) = canceled {
            info!("canceled a change that no rule wants any more");
            self.writes.canceled();
            self.unanswered(&change);
        }
    }
}

/// The changes that wait only for their write.
fn wanted<'r>(rules: &'r [RuleRunner], self_check: Option<&'r SelfCheck>) -> Wanted<'r> {
    let mut wanted = Wanted::default();
    let leftover = self_check.and_then(SelfCheck::leftover_taint);
    wanted.remove.extend(leftover);
    for state in rules.iter().map(|rule| &rule.state) {
        if let Some(action) = state.wants() {
            wanted.add(action, &state.rule().taint);
        }
    }
    wanted
}
