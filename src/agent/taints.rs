//! Changes of taints: what is sent next, and what the answers change.

use std::time::Instant;

use tracing::info;

use super::Agent;
use super::rule::RuleRunner;
use crate::api::ApiError;
use crate::node::patch::{Change, Wanted};
use crate::node::self_check::SelfCheck;
use crate::node::writes::{Denied, Request};
use crate::node::{self, Answer, Next};

impl Agent<'_> {
    pub(super) fn send_taints(&mut self, now: Instant) {
        if !self.slots.taints.is_idle() {
            return;
        }
        let wanted = wanted(&self.rules, self.self_check.as_ref());
        let next = self.latest.get().map_or(Next::Wait(None), |node| {
            self.writes.next(now, node, &wanted)
        });
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
                let wanted = wanted(&self.rules, self.self_check.as_ref());
                let denied = self.writes.got(now, &wanted, &answer);
                match &answer {
                    Ok(node) => {
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
        for rule in &mut self.rules {
            for denied in denied {
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
        let wanted = wanted(&self.rules, self.self_check.as_ref());
        let is_wanted = |request: &Request| {
            let change = request.change();
            change.is_none_or(|change| wanted.includes(change))
        };
        let canceled = self.slots.taints.cancel_unless(is_wanted);
        if let Some(Request::Patch(change)) = canceled {
            info!("canceled a change that no rule wants any more");
            self.writes.canceled();
            self.unanswered(&change);
        }
    }
}

/// The changes that wait only for their write.
fn wanted<'r>(rules: &'r [RuleRunner], self_check: Option<&'r SelfCheck>) -> Wanted<'r> {
    let mut wanted = Wanted::default();
    let added_by_check = self_check.and_then(SelfCheck::taint_to_remove);
    wanted.remove.extend(added_by_check);
    for state in rules.iter().map(|rule| &rule.state) {
        if let Some(action) = state.wants() {
            wanted.add(action, &state.rule().taint);
        }
    }
    wanted
}
