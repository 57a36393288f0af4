//! A rule at work: its decision, its gates, and what people are told of it.

mod outcome;
mod publication;

use std::time::Instant;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Taint;
use tracing::{debug, info};

use super::notifier::Notifier;
use crate::boot::Boot;
use crate::config::Rule;
use crate::gate::report::Update;
use crate::gate::run::RuleGates;
use crate::gate::{GateContext, NodeSnapshot, State};
use crate::node::patch::{Action, Change};
use crate::rate_limit::TokenBucket;
use crate::rule::{Decision, RuleState};
use crate::status::RuleStatus;
use publication::Publication;

/// A rule, its gates and what became of them.
pub(super) struct RuleRunner {
    state: RuleState,
    gates: RuleGates,
    notifier: Notifier,
    publication: Publication,
    /// Since when the decision has been what it is.
    since: Timestamp,
    last_removal: Option<Timestamp>,
    last_put_back: Option<Timestamp>,
    denied: Option<String>,
    /// What may have taken effect without an answer: if it has, that was us.
    unanswered: Option<Action>,
    /// A taint that flaps must not fill the log.
    allowance: TokenBucket,
    /// For what happens rarely, and must be told all the same: a deadline, a fight.
    rare_allowance: TokenBucket,
}

impl RuleRunner {
    pub(super) fn new(
        rule: Rule,
        boot: Option<Boot>,
        context: GateContext,
        notifier: Notifier,
    ) -> Self {
        let gates = RuleGates::new(&rule, context);
        Self {
            state: RuleState::new(rule, boot),
            gates,
            notifier,
            publication: Publication::new(),
            since: Timestamp::now(),
            last_removal: None,
            last_put_back: None,
            denied: None,
            unanswered: None,
            allowance: TokenBucket::LOG_LINES,
            rare_allowance: TokenBucket::LOG_LINES,
        }
    }

    /// Goes by this version of the rule from now on.
    pub(super) fn reconfigure(&mut self, now: Instant, rule: Rule) {
        if *self.rule() == rule {
            return;
        }
        if self.rule().publish_condition != rule.publish_condition {
            self.publication = Publication::new();
        }
        self.gates.reconfigure(&rule);
        self.state.reconfigure(now, rule, self.gates.together());
    }

    pub(super) fn rule(&self) -> &Rule {
        self.state.rule()
    }

    pub(super) fn decision(&self) -> Decision {
        self.state.decision()
    }

    pub(super) fn all_open(&self) -> bool {
        self.gates.together() == State::Open
    }

    /// Whether the rule waits only for the API server: for the Node, for what gates look at, or for a write.
    pub(super) fn waits_for_api(&self) -> bool {
        let may_be_tainted = self.decision() == Decision::NoNode || self.decision().is_tainted();
        let is_undecided = may_be_tainted && !self.is_done();
        self.wants().is_some() || is_undecided && self.gates.are_open_but_for_api()
    }

    /// Whether what the gates have said so far counts for something.
    pub(super) fn counts_on_gates(&self) -> bool {
        match self.decision() {
            Decision::Lapsing { .. } => true,
            Decision::Lapsed => self.wants().is_some(),
            _ => !self.is_done() && !self.rule().gates.is_empty() && self.all_open(),
        }
    }

    pub(super) fn wake_at(&self) -> Option<Instant> {
        let times = [self.state.wake_at(), self.gates.changes_at()];
        times.into_iter().flatten().min()
    }

    /// What waits for nothing but a write.
    pub(super) fn wants(&self) -> Option<Action> {
        self.due().filter(|_| !self.rule().dry_run)
    }

    /// The same, and what a dry run would write.
    fn due(&self) -> Option<Action> {
        match self.decision() {
            Decision::Ready => Some(Action::Remove),
            Decision::Lapsed => Some(Action::PutBack),
            _ => None,
        }
    }

    /// Whether the rule has done all it is going to do with the Node as it is.
    pub(super) fn is_done(&self) -> bool {
        match self.decision() {
            Decision::NotSelected | Decision::Absent => true,
            _ => self.rule().dry_run && self.due().is_some(),
        }
    }

    /// Whether `change` is about the rule's taint.
    pub(super) fn is_in(&self, change: Option<&Change>) -> bool {
        change.is_some_and(|change| {
            let mut taints = change.taints.iter();
            taints.any(|taint| self.is_behind(change.action, taint))
        })
    }

    /// Whether what becomes of `taint` is the rule's doing.
    fn is_behind(&self, action: Action, taint: &Taint) -> bool {
        let is_possible = match action {
            Action::Remove => self.decision().is_tainted(),
            Action::PutBack => self.decision().is_absent(),
        };
        is_possible && self.rule().taint.matches(taint)
    }

    /// Decides anew, and runs the gates or lets them rest by what comes out.
    pub(super) fn step(&mut self, now: Instant, sight: &NodeSnapshot) {
        let before = self.decision();
        if self.state.runs_gates() {
            // A pause begins a new round, and what was said in the one before does not count.
            self.gates.run(now, self.state.round());
        }
        self.see(now, sight);
        if !sight.watching {
            self.state.unwatched(now);
        }
        let occurrence = self.state.step(now, sight.node.as_ref());
        let decision = self.decision();
        if let Some(occurrence) = occurrence {
            self.occurred(now, occurrence);
        }
        if before != decision {
            self.enter(now, decision);
        }
        if self.state.runs_gates() {
            self.gates.run(now, self.state.round());
            self.see(now, sight);
        } else {
            self.gates.rest(now);
        }
    }

    /// What the gates say of the Node itself.
    fn see(&mut self, now: Instant, sight: &NodeSnapshot) {
        if self.state.runs_gates() {
            self.gates.observe_node(now, sight);
            self.state.observe(now, self.gates.together());
        }
    }

    /// See [`RuleState::paused`].
    pub(super) fn paused(&mut self, now: Instant) {
        self.state.paused(now);
    }

    /// Takes in what a condition reported if it is one of this rule's, and gives whether it is.
    pub(super) fn take(&mut self, now: Instant, update: &Update) -> bool {
        let is_mine = self.gates.apply(now, update);
        if is_mine {
            self.state.observe(now, self.gates.together());
        }
        is_mine
    }

    pub(super) fn status(&self) -> RuleStatus {
        let rule = self.rule();
        RuleStatus {
            name: rule.name.clone(),
            taint: rule.taint.to_string(),
            decision: self.decision().as_str(),
            meaning: self.decision().meaning(),
            done: self.is_done(),
            since: self.since,
            overdue: self.state.is_overdue(),
            dry_run: rule.dry_run,
            gates: self.gates.status().cloned().collect(),
            last_removal: self.last_removal,
            last_put_back: self.last_put_back,
            denied: self.denied.clone(),
            publish_failure: self.publish_failure().map(str::to_owned),
        }
    }

    fn enter(&mut self, now: Instant, decision: Decision) {
        self.since = Timestamp::now();
        if !decision.is_tainted() && decision != Decision::Lapsed {
            self.denied = None;
        }
        let worth_a_line = match decision {
            Decision::Held => Some("holding: Karpenter has not registered the node yet"),
            Decision::Ready if self.rule().dry_run => Some("would remove the taint (dry run)"),
            Decision::Lapsed if self.rule().dry_run => Some("would put the taint back (dry run)"),
            _ => None,
        };
        let rule = &self.state.rule().name;
        if let Some(line) = worth_a_line.filter(|_| self.allowance.try_take(now)) {
            info!(rule, "{line}");
        } else {
            debug!(rule, decision = decision.as_str(), "decided");
        }
    }
}

#[cfg(test)]
mod tests;
