//! The agent's requests beside the watch: which one is next, and what its answer leads to.

use std::pin::Pin;
use std::time::Instant;

use k8s_openapi::api::core::v1::Taint;

use super::Agent;
use super::once::Once;
use super::rule::RuleAtWork;
use crate::api::ApiError;
use crate::node;
use crate::node::patch::Removal;
use crate::node::removal::{Next, Verdict};
use crate::node::view::NodeView;
use crate::taint::TaintMatcher;

/// A request.
pub(super) enum Call {
    /// A removal.
    Send(Removal),
    /// A read before the next removal, of the Node with this uid.
    Read(String),
    /// The last look of `run --once`, at the Node with this uid.
    Confirm(String),
}

impl Call {
    /// Of the Node it is about.
    fn uid(&self) -> &str {
        match self {
            Self::Send(removal) => &removal.uid,
            Self::Read(uid) | Self::Confirm(uid) => uid,
        }
    }
}

type Answer = Result<NodeView, ApiError>;
type Answering<'a> = Pin<Box<dyn Future<Output = Answer> + 'a>>;

/// The request under way, if there is one: at most one at a time.
#[derive(Default)]
pub(super) struct Pending<'a>(Option<(Call, Answering<'a>)>);

impl Pending<'_> {
    pub(super) fn is_none(&self) -> bool {
        self.0.is_none()
    }

    pub(super) fn is_removal(&self) -> bool {
        matches!(self.0, Some((Call::Send(_), _)))
    }

    /// Breaks off a removal unless every taint of it is still `wanted`, and gives what it was to remove.
    pub(super) fn break_off_unless(&mut self, wanted: impl Fn(&Taint) -> bool) -> Option<Removal> {
        let unwanted = self.0.take_if(|(call, _)| match call {
            Call::Send(removal) => !removal.taints.iter().all(&wanted),
            Call::Read(_) | Call::Confirm(_) => false,
        });
        match unwanted {
            Some((Call::Send(removal), _)) => Some(removal),
            _ => None,
        }
    }

    /// The answer; for ever, if there is no request. Safe to drop and call again.
    pub(super) async fn answered(&mut self) -> (Call, Answer) {
        if let Some((_, answer)) = &mut self.0 {
            let answer = answer.await;
            if let Some((call, _)) = self.0.take() {
                return (call, answer);
            }
        }
        std::future::pending().await
    }
}

impl<'a> Agent<'a> {
    /// Starts the request that is due now, if there is one.
    pub(super) fn next_call(&mut self, now: Instant) -> Pending<'a> {
        self.write_at = None;
        let Some(node) = self.latest.get() else {
            return Pending::default();
        };
        let call = match self.writes.next(now, node, &ready(&self.rules)) {
            Next::Send(removal) => Call::Send(removal),
            Next::Read => Call::Read(node.metadata.uid.clone()),
            Next::Wait(until) => {
                self.write_at = until;
                if !self.once.as_ref().is_some_and(|once| once.is_due(now)) {
                    return Pending::default();
                }
                Call::Confirm(node.metadata.uid.clone())
            }
        };
        let (api, name) = (self.api, self.node_name.clone());
        let removal = match &call {
            Call::Send(removal) => Some(removal.clone()),
            Call::Read(_) | Call::Confirm(_) => None,
        };
        let answer = Box::pin(async move {
            match removal {
                Some(removal) => node::patch(api, &name, &removal).await,
                None => node::get(api, &name).await,
            }
        });
        Pending(Some((call, answer)))
    }

    /// Takes in an answer. Gives whether it was the last that `run --once` waited for.
    pub(super) fn take_answer(&mut self, call: &Call, answer: Answer) -> bool {
        let now = Instant::now();
        let verdict = match call {
            Call::Send(removal) => self.writes.sent(now, removal, &answer),
            Call::Read(_) => self.writes.read(now, &ready(&self.rules), &answer),
            Call::Confirm(_) => None,
        };
        if let (Call::Read(_), Ok(node)) = (call, &answer) {
            for rule in self
                .rules
                .iter_mut()
                .filter(|rule| node.has(&rule.rule().taint))
            {
                // Whatever had no answer did not take effect.
                rule.set_unanswered(false);
            }
        }
        let is_confirmed = matches!(call, Call::Confirm(_)) && answer.is_ok();
        match (&verdict, &answer, call) {
            (Some(Verdict::Done), Ok(node), Call::Send(removal)) => {
                self.connection.request_succeeded();
                for rule in &mut self.rules {
                    rule.removed(now, &removal.taints, node);
                }
            }
            (Some(Verdict::Unanswered), _, Call::Send(removal)) => self.unanswered(removal),
            (
                Some(Verdict::Denied {
                    taint,
                    message,
                    first,
                }),
                ..,
            ) => {
                let about = std::slice::from_ref(taint);
                if let Some(rule) = self.rules.iter_mut().find(|rule| rule.is_about(about)) {
                    rule.denied(taint, message, *first);
                }
            }
            _ => {}
        }
        let asked = answer.as_ref().err().and_then(ApiError::retry_after);
        match answer {
            Ok(node) => self.offer_answer(call.uid(), node),
            Err(error) if error.is_not_found() => self.gone(call.uid()),
            Err(error) => self.connection.request_failed(&error),
        }
        if is_confirmed {
            self.step(now);
            return self.once.as_ref().is_some_and(|once| once.is_due(now));
        }
        if let (Call::Confirm(_), Some(once)) = (call, &mut self.once) {
            once.postpone(now, asked.unwrap_or_default());
        }
        false
    }

    /// `removal` may have taken effect.
    pub(super) fn unanswered(&mut self, removal: &Removal) {
        for rule in &mut self.rules {
            if rule.is_about(&removal.taints) {
                rule.set_unanswered(true);
            }
        }
    }

    /// An answer to a request about the Node with this `uid`, unless that one is gone meanwhile.
    fn offer_answer(&mut self, uid: &str, node: NodeView) {
        let known = self.latest.get().map(|known| known.metadata.uid.as_str());
        if known == Some(uid) {
            self.offer(node);
        }
    }

    /// When there is something to do by time alone. What waits for the answer to a request does not wait for a time.
    pub(super) fn wake_at(&self, pending: &Pending<'_>) -> Option<Instant> {
        let rules = self.rules.iter().filter_map(RuleAtWork::wake_at);
        let rules = rules.filter(|_| !pending.is_removal());
        let once = self.once.as_ref().and_then(Once::due_at);
        let calls = once
            .into_iter()
            .chain(self.write_at)
            .filter(|_| pending.is_none());
        rules.chain(calls).min()
    }
}

/// The taints that wait for nothing but a write.
pub(super) fn ready(rules: &[RuleAtWork]) -> Vec<&TaintMatcher> {
    let ready = rules.iter().filter(|rule| rule.wants_removal());
    ready.map(|rule| &rule.rule().taint).collect()
}
