//! A rule at work: joins its state, its gates, its condition and the notifications.

use std::time::Instant;

use jiff::Timestamp;
use tracing::{debug, info};

use super::notifier::Notifier;
use crate::api::ApiError;
use crate::boot::Boot;
use crate::config::Rule;
use crate::gate::GateContext;
use crate::gate::report::Update;
use crate::gate::run::RuleGates;
use crate::gate::{NodeFreshness, NodeSnapshot};
use crate::node::Next;
use crate::node::patch::Change;
use crate::node::view::NodeView;
use crate::node::writes::Denied;
use crate::rate_limit::TokenBucket;
use crate::rule::publication::{ConditionWrite, Publication};
use crate::rule::{Decision, LeftTaint, Notification, PublishedCondition, RuleEvent, RuleState};
use crate::status::{LastRemoval, RuleStatus};

pub(super) struct RuleRunner {
    pub(super) state: RuleState,
    gates: RuleGates,
    pub(super) publication: Publication,
    notifier: Notifier,
    /// When the decision last changed.
    since: Timestamp,
    last_removal: Option<LastRemoval>,
    last_put_back: Option<Timestamp>,
    /// A taint that flaps must not fill the log.
    allowance: TokenBucket,
    /// For long waits, deadlines, fights, and changes that are undone or denied, which are rare and important.
    rare_allowance: TokenBucket,
    /// Two webhooks that deny in turn have another message each time.
    denial_allowance: TokenBucket,
}

impl RuleRunner {
    pub(super) fn new(
        rule: Rule,
        boot: Option<Boot>,
        context: GateContext,
        notifier: Notifier,
    ) -> Self {
        Self {
            gates: RuleGates::new(&rule, context),
            state: RuleState::new(rule, boot),
            publication: Publication::default(),
            notifier,
            since: Timestamp::now(),
            last_removal: None,
            last_put_back: None,
            allowance: TokenBucket::LOG_LINES,
            rare_allowance: TokenBucket::LOG_LINES,
            denial_allowance: TokenBucket::LOG_LINES,
        }
    }

    /// Follows this version of the rule from now on.
    pub(super) fn reconfigure(&mut self, now: Instant, rule: Rule) {
        if *self.state.rule() == rule {
            return;
        }
        if self.state.rule().publish_condition != rule.publish_condition {
            self.publication = Publication::default();
        }
        self.gates.reconfigure(now, &rule);
        self.state.reconfigure(now, rule, self.gates.state());
    }

    /// Whether `change`, which is under way, changes the rule's taint. Then the rule does not decide before the answer.
    pub(super) fn is_changed_by(&self, change: Option<&Change>) -> bool {
        change.is_some_and(|change| self.state.is_changed_by(change))
    }

    /// Whether the rule waits only for the API server: for the Node, for what gates look at, or for a write.
    pub(super) fn waits_for_api(&self) -> bool {
        self.state.wants().is_some()
            || self.state.awaits_removal() && self.gates.are_open_but_for_api()
    }

    pub(super) fn wake_at(&self) -> Option<Instant> {
        let times = [self.state.wake_at(), self.gates.observe_node_at()];
        times.into_iter().flatten().min()
    }

    /// Decides again, and starts or stops the gates by the decision.
    pub(super) fn step(&mut self, now: Instant, snapshot: &NodeSnapshot) {
        // After a pause, a new round begins before anything is decided: the one before does not count.
        self.run_gates(now, snapshot);
        if !snapshot.watching {
            self.state.unwatched(now);
        }
        let before = self.state.decision();
        let event = self.state.step(now, snapshot.node.as_ref());
        self.happened(now, before, event);
        self.run_gates(now, snapshot);
    }

    fn run_gates(&mut self, now: Instant, snapshot: &NodeSnapshot) {
        if self.state.runs_gates() {
            self.gates.run(now, self.state.round(), snapshot);
            self.state.observe(now, self.gates.state());
        } else {
            self.gates.rest(now);
        }
    }

    /// Records what a gate reported, if the gate is one of this rule's. Returns whether it is.
    pub(super) fn observe_gate(&mut self, now: Instant, update: &Update) -> bool {
        let is_own = self.gates.apply(now, update);
        if is_own {
            self.state.observe(now, self.gates.state());
        }
        is_own
    }

    /// See [`RuleState::accepted`].
    pub(super) fn accepted(&mut self, now: Instant, change: &Change, node: &NodeView) {
        let before = self.state.decision();
        let events = self.state.accepted(now, change, node);
        self.happened(now, before, events);
    }

    /// See [`RuleState::denied`].
    pub(super) fn denied(&mut self, now: Instant, denied: &Denied) {
        let event = self.state.denied(denied);
        self.happened(now, self.state.decision(), event);
    }

    /// The write of the rule's condition that is due, if there is one. `not_before`: see [`Publication::next`].
    pub(super) fn next_condition(
        &mut self,
        now: Instant,
        node: Option<&NodeView>,
        freshness: &NodeFreshness,
        not_before: Option<Instant>,
    ) -> Next<ConditionWrite> {
        let Some((condition, node)) = self.condition(now).zip(node) else {
            self.publication.nothing_to_write();
            return Next::Wait(None);
        };
        let stale = freshness.stale_conditions.contains_key(&condition.kind);
        let clock = Timestamp::now();
        let next = self
            .publication
            .next(now, clock, node, &condition, stale, not_before);
        // The condition changes when every gate has been open for long enough.
        let stable_at = self.state.stable_at().filter(|at| *at > now);
        next.or_else(|| Next::Wait(stable_at))
    }

    /// `None` before every gate has been evaluated.
    fn condition(&self, now: Instant) -> Option<PublishedCondition> {
        let rule = self.state.rule();
        let condition = rule.publish_condition.as_ref()?;
        if rule.dry_run || !self.state.runs_gates() || !self.gates.are_evaluated() {
            return None;
        }
        let condition = PublishedCondition::new(
            &condition.kind,
            self.gates.state(),
            self.state.is_stable(now),
            &self.gates.waits_for(),
        );
        Some(condition.after(self.state.has_lapsed()))
    }

    /// Whether the rule writes the condition of this type.
    pub(super) fn publishes(&self, kind: &str) -> bool {
        let rule = self.state.rule();
        let own = rule.publish_condition.as_ref();
        own.is_some_and(|own| own.kind == kind) && !rule.dry_run
    }

    /// The answer to the write of the condition of this type.
    pub(super) fn condition_answered(
        &mut self,
        now: Instant,
        kind: &str,
        failure: Option<&ApiError>,
    ) {
        if self.publishes(kind) {
            self.publication.answered(now, failure);
        }
    }

    /// `left`: the taints of the Node that no rule removes.
    pub(super) fn status(&self, left: &[LeftTaint]) -> RuleStatus {
        let (rule, decision) = (self.state.rule(), self.state.decision());
        let is_own = |left: &LeftTaint| {
            left.rule == rule.name || self.state.own_taints().include(&left.taint)
        };
        RuleStatus {
            name: rule.name.clone(),
            taint: rule.taint.to_string(),
            retaint_taint: rule.taints().nth(1).map(|taint| taint.to_string()),
            decision: decision.as_str(),
            meaning: decision.meaning(),
            done: self.state.is_done() && !left.iter().any(is_own),
            since: self.since,
            overdue: self.state.is_overdue(),
            dry_run: rule.dry_run,
            gates: self.gates.status().cloned().collect(),
            last_removal: self.last_removal.clone(),
            last_put_back: self.last_put_back,
            denied: self.state.denial().map(str::to_owned),
            write_failure: self.state.failure().map(str::to_owned),
            publish_failure: self.publication.failure().map(str::to_owned),
        }
    }

    fn happened(
        &mut self,
        now: Instant,
        before: Decision,
        events: impl IntoIterator<Item = RuleEvent>,
    ) {
        for event in events {
            let notification = self.notification(event);
            self.record(&notification);
            let is_reported = self.should_report(now, &notification.event);
            self.notifier.notify(&notification, is_reported);
        }
        if before != self.state.decision() {
            self.decision_changed(now);
        }
    }

    /// For the status.
    fn record(&mut self, notification: &Notification) {
        match notification.event {
            RuleEvent::Removed { .. } | RuleEvent::RemovedUnanswered { .. } => {
                self.last_removal = Some(LastRemoval {
                    time: Timestamp::now(),
                    waited_seconds: notification.waited_seconds(),
                    last_gate: notification.last_gate.clone(),
                });
            }
            RuleEvent::PutBack => self.last_put_back = Some(Timestamp::now()),
            _ => {}
        }
    }

    fn should_report(&mut self, now: Instant, event: &RuleEvent) -> bool {
        match event {
            RuleEvent::Tainted
            | RuleEvent::RemovedByOther { .. }
            | RuleEvent::ReplacedByOther { .. } => self.allowance.try_take(now),
            RuleEvent::LongWait
            | RuleEvent::Deadline { .. }
            | RuleEvent::Fight
            | RuleEvent::Undone { .. } => self.rare_allowance.try_take(now),
            RuleEvent::Denied(denied) => denied.first && self.denial_allowance.try_take(now),
            // The agent's own changes are limited themselves.
            RuleEvent::Removed { .. }
            | RuleEvent::RemovedUnanswered { .. }
            | RuleEvent::PutBack
            | RuleEvent::TakenOff { .. } => true,
        }
    }

    fn notification(&self, event: RuleEvent) -> Notification {
        let rule = self.state.rule();
        Notification {
            rule: rule.name.clone(),
            taint: self.state.own_taints().shown().to_string(),
            dry_run: rule.dry_run,
            node_uid: self.state.uid().map(str::to_owned),
            waits_for: self.state.waits_for(self.gates.waits_for()),
            last_gate: self.gates.last_to_open().map(str::to_owned),
            event,
        }
    }

    fn decision_changed(&mut self, now: Instant) {
        self.since = Timestamp::now();
        let (rule, decision) = (self.state.rule(), self.state.decision());
        let line = match decision {
            Decision::Held => Some("holding: Karpenter has not registered the node yet"),
            Decision::Ready if rule.dry_run => Some("would remove the taint (dry run)"),
            Decision::Lapsed if rule.dry_run => Some("would put the taint back (dry run)"),
            _ => None,
        };
        if let Some(line) = line.filter(|_| self.allowance.try_take(now)) {
            info!(rule = rule.name, "{line}");
        } else {
            debug!(rule = rule.name, decision = decision.as_str(), "decided");
        }
    }
}

#[cfg(test)]
mod tests;
