//! The agent's requests beside the watch: which one is next, and what its answer leads to.

use std::pin::Pin;
use std::time::Instant;

use super::Agent;
use super::once::Once;
use super::rule::RuleAtWork;
use crate::api::ApiError;
use crate::node;
use crate::node::patch::{Action, Change, Wanted};
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
    pub(super) fn is_change(&self) -> bool {
        matches!(self.0, Some((Call::Send(_), _)))
    }

    /// Breaks off a change that is not `wanted` any more, and gives it.
    pub(super) fn break_off_unless(&mut self, wanted: impl Fn(&Change) -> bool) -> Option<Change> {
        let unwanted = self.0.take_if(|(call, _)| match call {
            Call::Send(change) => !wanted(change),
            Call::Read(_) | Call::Confirm(_) => false,
        });
        match unwanted {
            Some((Call::Send(change), _)) => Some(change),
            _ => None,
        }
    }
}

/// What is being told, and of the Node with which uid.
pub(super) struct Telling {
    condition: String,
    uid: String,
}

pub(super) type Answer = Result<NodeView, ApiError>;
type Answering<'a> = Pin<Box<dyn Future<Output = Answer> + 'a>>;

/// The request of a kind that is under way, if there is one: at most one at a time.
pub(super) struct Pending<'a, C>(Option<(C, Answering<'a>)>);

impl<'a, C> Pending<'a, C> {
    pub(super) const NONE: Self = Self(None);

    pub(super) fn new(call: C, answer: impl Future<Output = Answer> + 'a) -> Self {
        Self(Some((call, Box::pin(answer))))
    }

    pub(super) fn is_none(&self) -> bool {
        self.0.is_none()
    }

    /// The answer; for ever, if there is no request. Safe to drop and call again.
    pub(super) async fn answered(&mut self) -> (C, Answer) {
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
    pub(super) fn next_call(&mut self, now: Instant) -> Pending<'a, Call> {
        self.write_at = None;
        let Some(node) = self.latest.get() else {
            return Pending::NONE;
        };
        let call = match self.writes.next(now, node, &wanted(&self.rules)) {
            Next::Send(removal) => Call::Send(removal),
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
            Call::Read(_) => self.writes.read(now, &wanted(&self.rules), &answer),
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
        publishing: &Pending<'_, Telling>,
    ) -> Option<Instant> {
        let rules = self.rules.iter().filter_map(RuleAtWork::wake_at);
        let rules = rules.filter(|_| !pending.is_change());
        let once = self.once.as_ref().and_then(Once::due_at);
        let calls = once
            .into_iter()
            .chain(self.write_at)
            .filter(|_| pending.is_none());
        let publications = self.rules.iter().filter_map(RuleAtWork::publish_at);
        let publications = publications.filter(|_| publishing.is_none());
        rules.chain(calls).chain(publications).min()
    }

    /// Starts the write of the first condition that is due now, if there is one.
    pub(super) fn next_publication(&mut self, now: Instant) -> Pending<'a, Telling> {
        let Some(node) = self.latest.get() else {
            return Pending::NONE;
        };
        let mut due = self.rules.iter_mut();
        let Some((condition, patch)) = due.find_map(|rule| rule.next_publication(now, node)) else {
            return Pending::NONE;
        };
        let uid = node.metadata.uid.clone();
        let (api, name) = (self.api, self.node_name.clone());
        Pending::new(
            Telling {
                condition,
                uid: uid.clone(),
            },
            async move { node::patch_status(api, &name, &uid, &patch).await },
        )
    }

    /// Takes in the answer.
    pub(super) fn take_published(&mut self, told: &Telling, answer: Answer) {
        let now = Instant::now();
        for rule in &mut self.rules {
            rule.published(now, &told.condition, &answer);
        }
        match answer {
            Ok(node) => self.offer_answer(&told.uid, node),
            Err(error) if error.is_not_found() => self.gone(&told.uid),
            Err(error) => self.connection.request_failed(&error),
        }
    }
}

/// What waits for nothing but a write.
pub(super) fn wanted(rules: &[RuleAtWork]) -> Wanted<'_> {
    let mut wanted = Wanted::default();
    for rule in rules {
        match rule.wants() {
            Some(Action::Remove) => wanted.remove.push(&rule.rule().taint),
            Some(Action::PutBack) => wanted.put_back.push(rule.rule().taint.to_taint()),
            None => {}
        }
    }
    wanted
}
