//! The agent's requests besides the watch: what is sent next, when the loop wakes for it, and what every answer changes.

use std::time::Instant;

use super::Agent;
use super::rule::RuleRunner;
use super::slot::Slot;
use crate::node::Answer;
use crate::node::patch::Change;
use crate::node::self_check::DryRun;
use crate::node::view::Latest;
use crate::node::writes::Request;
use crate::rule::publication::ConditionWrite;

/// The requests that are under way or due.
#[derive(Default)]
pub(super) struct Slots<'a> {
    pub(super) taints: Slot<'a, Request>,
    /// The last look of `run --once`, at the Node with this uid.
    pub(super) last_look: Slot<'a, String>,
    pub(super) conditions: Slot<'a, ConditionWrite>,
    pub(super) self_check: Slot<'a, DryRun>,
}

impl Slots<'_> {
    /// The change under way.
    pub(super) fn change(&self) -> Option<&Change> {
        self.taints.request().and_then(Request::change)
    }
}

impl Agent<'_> {
    /// Sends every request that is due.
    pub(super) fn send_requests(&mut self, now: Instant) {
        self.send_taints(now);
        self.send_last_look(now);
        self.send_condition(now);
        self.send_self_check(now);
        let awaited = self.slots.taints.waits_for_credentials()
            || self.slots.last_look.waits_for_credentials()
            || self.slots.conditions.waits_for_credentials();
        self.renewal.follow(self.api, awaited);
    }

    /// Sends again at once what was refused for the credentials before.
    pub(super) fn credentials_renewed(&mut self) {
        if self.slots.taints.credentials_renewed() {
            self.writes.retry_now();
        }
        if let (true, Some(once)) = (self.slots.last_look.credentials_renewed(), &mut self.once) {
            once.retry_now();
        }
        if self.slots.conditions.credentials_renewed() {
            self.condition_writes.retry_now();
        }
        for rule in &mut self.rules {
            rule.publication.retry_now();
        }
    }

    /// When the loop has something to do by time alone. A rule in the change under way waits for its answer.
    pub(super) fn wake_at(&self) -> Option<Instant> {
        let change = self.slots.change();
        let is_free = |rule: &&RuleRunner| !rule.is_changed_by(change);
        let slots = [
            self.slots.taints.due_at(),
            self.slots.last_look.due_at(),
            self.slots.conditions.due_at(),
            self.slots.self_check.due_at(),
            self.pauses.beat_at(),
        ];
        let rules = self.rules.iter().filter(is_free);
        let times = rules.filter_map(RuleRunner::wake_at);
        times.chain(slots.into_iter().flatten()).min()
    }

    /// Records the answer to a request about the Node with this `uid`, unless another Node is known by now. A 404 is a
    /// failure like others: if it is true, the watch shows that soon, and only the watch shows a recreated Node.
    pub(super) fn observe_answer(&mut self, uid: &str, answer: Answer) {
        let known = self.latest.get().map(|known| &known.metadata.uid);
        if let Ok(node) = answer
            && known.is_some_and(|known| known == uid)
        {
            self.observe_node(node, Latest::answered);
        }
    }
}
