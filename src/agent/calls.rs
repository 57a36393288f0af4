//! The agent's requests beside the watch: which one is next, and what its answer leads to.

use std::time::Instant;

use super::Agent;
use super::conditions::ConditionWrite;
use super::once::Once;
use super::pending::{Answer, Pending};
use super::rule::RuleRunner;
use crate::node;
use crate::node::patch::{Action, Change, Wanted};
use crate::node::self_check::SelfCheck;
use crate::node::view::NodeView;
use crate::node::writes::{Next, Verdict};

/// A request.
pub(super) enum Call {
    /// A change of taints.
    Send(Change),
    /// A read before the next change, of the Node with this uid.
    Read(String),
    /// The last look of `run --once`, at the Node with this uid.
    Confirm(String),
}

impl Call {
    /// Of the Node it is about.
    fn uid(&self) -> &str {
        match self {
            Self::Send(change) => &change.uid,
            Self::Read(uid) | Self::Confirm(uid) => uid,
        }
    }
}

impl Pending<'_, Call> {
    /// The change under way, if there is one.
    pub(super) fn change(&self) -> Option<&Change> {
        match self.call() {
            Some(Call::Send(change)) => Some(change),
            _ => None,
        }
    }
}

impl<'a> Agent<'a> {
    /// Starts the request that is due now, if there is one.
    pub(super) fn next_call(&mut self, now: Instant) -> Pending<'a, Call> {
        self.write_at = None;
        let Some(node) = self.latest.get() else {
            return Pending::NONE;
        };
        let call = match self
            .writes
            .next(now, node, &wanted(&self.rules, self.self_check.as_ref()))
        {
            Next::Send(change) => Call::Send(change),
            Next::Read => Call::Read(node.metadata.uid.clone()),
            Next::Wait(until) => {
                self.write_at = until;
                if !self.once.as_ref().is_some_and(|once| once.is_due(now)) {
                    return Pending::NONE;
                }
                Call::Confirm(node.metadata.uid.clone())
            }
        };
        let (api, name) = (self.api, self.node_name.clone());
        let change = match &call {
            Call::Send(change) => Some(change.clone()),
            Call::Read(_) | Call::Confirm(_) => None,
        };
        Pending::new(call, async move {
            match change {
                Some(change) => node::patch(api, &name, &change).await,
                None => node::get(api, &name).await,
            }
        })
    }

    /// Takes in an answer. Gives whether it was the last that `run --once` waited for.
    pub(super) fn take_answer(&mut self, call: &Call, answer: Answer) -> bool {
        let now = Instant::now();
        let verdict = match call {
            Call::Send(change) => self.writes.sent(now, change, &answer),
            Call::Read(_) => {
                self.writes
                    .read(now, &wanted(&self.rules, self.self_check.as_ref()), &answer)
            }
            Call::Confirm(_) => None,
        };
        if let (Call::Read(_), Ok(node)) = (call, &answer) {
            self.rules.iter_mut().for_each(|rule| rule.read(node));
        }
        let is_confirmed = matches!(call, Call::Confirm(_)) && answer.is_ok();
        match (&verdict, &answer, call) {
            (Some(Verdict::Done), Ok(node), Call::Send(change)) => {
                self.connection.request_succeeded();
                for rule in &mut self.rules {
                    rule.changed(now, change, node);
                }
            }
            (Some(Verdict::Unanswered), _, Call::Send(change)) => self.unanswered(change),
            (
                Some(Verdict::Denied {
                    action,
                    taint,
                    message,
                    first,
                }),
                ..,
            ) => {
                for rule in &mut self.rules {
                    rule.denied(*action, taint, message, *first);
                }
            }
            _ => {}
        }
        if let (Call::Confirm(_), Some(once), Err(error)) = (call, &mut self.once, &answer) {
            once.postpone(now, error);
        }
        match answer {
            Ok(node) => self.offer_answer(call.uid(), node),
            Err(error) if error.is_not_found() => self.gone(call.uid()),
            Err(error) => self.request_failed(&error),
        }
        if is_confirmed {
            self.step(now, None);
            return self.once.as_ref().is_some_and(|once| once.is_due(now));
        }
        false
    }

    /// `change` may have taken effect.
    pub(super) fn unanswered(&mut self, change: &Change) {
        for rule in &mut self.rules {
            rule.unanswered(change);
        }
    }

    /// An answer to a request about the Node with this `uid`, unless that one is gone meanwhile.
    pub(super) fn offer_answer(&mut self, uid: &str, node: NodeView) {
        let known = self.latest.get().map(|known| known.metadata.uid.as_str());
        if known == Some(uid) {
            self.offer(node);
        }
    }

    /// When there is something to do by time alone. What waits for the answer to a request does not wait for a time.
    pub(super) fn wake_at(
        &self,
        pending: &Pending<'_, Call>,
        writing: &Pending<'_, ConditionWrite>,
    ) -> Option<Instant> {
        let change = pending.change();
        let rules = self.rules.iter().filter(|rule| !rule.is_in(change));
        let rules = rules.filter_map(RuleRunner::wake_at);
        let once = self.once.as_ref().and_then(Once::due_at);
        let calls = once
            .into_iter()
            .chain(self.write_at)
            .filter(|_| pending.is_none());
        let conditions = self.rules.iter().filter_map(RuleRunner::condition_at);
        let conditions = conditions.filter(|_| writing.is_none());
        rules.chain(calls).chain(conditions).min()
    }
}

/// What waits for nothing but a write.
pub(super) fn wanted<'r>(rules: &'r [RuleRunner], self_check: Option<&'r SelfCheck>) -> Wanted<'r> {
    let mut wanted = Wanted::default();
    wanted
        .remove
        .extend(self_check.and_then(SelfCheck::leftover));
    for rule in rules {
        match rule.wants() {
            Some(Action::Remove) => wanted.remove.push(&rule.rule().taint),
            Some(Action::PutBack) => wanted.put_back.push(rule.rule().taint.to_taint()),
            None => {}
        }
    }
    wanted
}
