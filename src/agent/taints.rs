//! Changes of taints: what is sent next, and what the answers change.

use std::time::Instant;

use tracing::info;

use super::Agent;
use super::rule::RuleRunner;
use crate::api::ApiError;
use crate::node::patch::{Change, Wanted, Wish};
use crate::node::self_check::SelfCheck;
use crate::node::view::NodeView;
use crate::node::writes::{Denied, Request};
use crate::node::{self, Answer, Next};
use crate::rule::PutBacks;

impl Agent<'_> {
    pub(super) fn send_taints(&mut self, now: Instant) {
        if !self.slots.taints.is_idle() {
            return;
        }
        let node = self.latest.get();
        let wanted = wanted(&self.rules, self.self_check.as_ref(), &self.put_backs, node);
        let next = node.map_or(Next::Wait(None), |node| {
            self.writes.next(now, node, &wanted)
        });
        if let Next::Send(Request::Patch(change)) = &next {
            let rules = self.rules.iter().map(|rule| &rule.state);
            self.put_backs.sent(change, rules);
        }
        let (api, name) = (self.api, &self.options.node_name);
        self.slots.taints.send_or_wait(next, |request| {
            let change = request.change().cloned();
            async move {
                match change {
                    Some(change) => node::patch(api, name, change).await,
                    None => node::get(api, name).await,
                }
            }
        });
    }

    pub(super) fn taints_answered(&mut self, request: &Request, answer: Answer) {
        let now = Instant::now();
        match request {
            Request::Patch(change) => {
                let denied = self.writes.patched(now, change, &answer);
                for taken_off in self.put_backs.answered(change, &answer) {
                    self.taken_off(taken_off);
                }
                match &answer {
                    Ok(node) => {
                        self.connection.request_succeeded();
                        for rule in &mut self.rules {
                            rule.accepted(now, change, node);
                        }
                    }
                    Err(error) => {
                        self.connection.change_failed(error);
                        if error.leaves_outcome_unknown() {
                            self.unanswered(change);
                        }
                        self.change_failed(error);
                    }
                }
                self.denied(now, &denied);
                self.observe_answer(&change.uid, answer);
            }
            Request::Get(uid) => {
                let node = self.latest.get();
                let wanted = wanted(&self.rules, self.self_check.as_ref(), &self.put_backs, node);
                let denied = self.writes.got(now, &wanted, &answer);
                match &answer {
                    Ok(node) => {
                        self.put_backs.read(node);
                        for rule in &mut self.rules {
                            rule.state.read(node);
                        }
                    }
                    Err(error) => {
                        self.connection.read_failed(error);
                        self.change_failed(error);
                    }
                }
                self.denied(now, &denied);
                self.observe_answer(uid, answer);
            }
        }
    }

    /// The change that is tried again and again has failed once more.
    fn change_failed(&mut self, error: &ApiError) {
        if let Some(change) = self.writes.failing() {
            for rule in &mut self.rules {
                rule.state.failed(change, error);
            }
        }
    }

    fn denied(&mut self, now: Instant, denied: &[Denied]) {
        for denied in denied {
            self.denied_to_take_off(now, denied);
            for rule in &mut self.rules {
                rule.denied(now, denied);
            }
        }
    }

    fn unanswered(&mut self, change: &Change) {
        for rule in &mut self.rules {
            rule.state.unanswered(change);
        }
    }

    /// The agent asks the rules before every request, so nothing else can remain of what a removed rule wanted.
    pub(super) fn cancel_unwanted_change(&mut self) {
        let node = self.latest.get();
        let wanted = wanted(&self.rules, self.self_check.as_ref(), &self.put_backs, node);
        let is_wanted = |request: &Request| {
            let change = request.change();
            change.is_none_or(|change| wanted.includes(change))
        };
        let canceled = self.slots.taints.cancel_unless(is_wanted);
        if let Some(Request::Patch(change)) = canceled {
            info!("canceled a change that no rule wants any more");
            self.writes.canceled();
            self.put_backs.unanswered(&change);
            self.unanswered(&change);
        }
    }
}

/// The changes that wait only for their write.
fn wanted<'r>(
    rules: &'r [RuleRunner],
    self_check: Option<&'r SelfCheck>,
    put_backs: &'r PutBacks,
    node: Option<&NodeView>,
) -> Wanted<'r> {
    let mut wanted = Wanted::default();
    let orphans = node
        .into_iter()
        .flat_map(|node| put_backs.to_take_off(node));
    let added_by_check = self_check.and_then(SelfCheck::taint_to_remove);
    let without_rule = orphans.chain(added_by_check);
    wanted.remove.extend(without_rule.map(Wish::from));
    for state in rules.iter().map(|rule| &rule.state) {
        state.add_wanted(&mut wanted);
    }
    wanted
}
