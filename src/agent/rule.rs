//! A rule at work: its decision, its gates, and what people are told of it.

use std::time::Instant;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Taint;
use tracing::{debug, info, warn};

use super::gates::ObservedGates;
use crate::config::Rule;
use crate::gate::observation::NodeSight;
use crate::gate::report::Update;
use crate::gate::set::Surroundings;
use crate::logging::Allowance;
use crate::node::view::NodeView;
use crate::rule::{Decision, Occurrence, RuleState};
use crate::status::RuleStatus;

/// A rule, its gates and what became of them.
pub(super) struct RuleAtWork {
    state: RuleState,
    gates: ObservedGates,
    /// Since when the decision has been what it is.
    since: Timestamp,
    last_removal: Option<Timestamp>,
    denied: Option<String>,
    /// Whether a removal may have taken effect without an answer: if the taint is gone, that was us.
    unanswered: bool,
    /// A taint that flaps must not fill the log.
    allowance: Allowance,
    /// The same for what it must not use up.
    rare_allowance: Allowance,
}

impl RuleAtWork {
    pub(super) fn new(index: usize, rule: Rule, surroundings: Surroundings) -> Self {
        let gates = ObservedGates::new(index, &rule, surroundings);
        Self {
            state: RuleState::new(rule),
            gates,
            since: Timestamp::now(),
            last_removal: None,
            denied: None,
            unanswered: false,
            allowance: Allowance::default(),
            rare_allowance: Allowance::default(),
        }
    }

    pub(super) fn rule(&self) -> &Rule {
        self.state.rule()
    }

    pub(super) fn decision(&self) -> Decision {
        self.state.decision()
    }

    pub(super) fn all_open(&self) -> bool {
        self.gates.all_open()
    }

    /// Whether what open gates have said counts for something.
    pub(super) fn counts_on_gates(&self) -> bool {
        let counts = self.decision().runs_gates() && !self.is_done();
        counts && !self.rule().gates.is_empty() && self.all_open()
    }

    pub(super) fn wake_at(&self) -> Option<Instant> {
        self.state.wake_at()
    }

    /// Whether the taint waits for nothing but a write.
    pub(super) fn wants_removal(&self) -> bool {
        self.decision() == Decision::Ready && !self.rule().dry_run
    }

    /// Whether the rule has done all it is going to do with the Node as it is.
    pub(super) fn is_done(&self) -> bool {
        match self.decision() {
            Decision::Absent | Decision::NotSelected => true,
            decision => self.rule().dry_run && decision.is_ready(),
        }
    }

    /// Whether one of `taints` is the Node's by this rule.
    pub(super) fn is_about(&self, taints: &[Taint]) -> bool {
        self.decision().is_tainted() && taints.iter().any(|taint| self.rule().taint.matches(taint))
    }

    /// Decides anew, and runs the gates or lets them rest by what comes out.
    pub(super) fn step(&mut self, now: Instant, sight: &NodeSight) {
        let before = self.decision();
        if before.runs_gates() {
            // A pause begins a new round, and what was said in the one before does not count.
            self.gates.run(now, self.state.round());
        }
        self.see(now, sight);
        let occurrence = self.state.step(now, sight.node.as_ref());
        let decision = self.decision();
        if let Some(occurrence) = occurrence {
            self.tell(now, occurrence);
        }
        if before != decision {
            self.enter(now, decision);
        }
        if decision.runs_gates() {
            self.gates.run(now, self.state.round());
            self.see(now, sight);
        } else {
            self.gates.rest(now);
        }
    }

    /// What the gates say of the Node itself.
    fn see(&mut self, now: Instant, sight: &NodeSight) {
        if self.decision().runs_gates() {
            self.gates.see(now, sight);
            self.state.observe(now, self.gates.all_open());
        }
    }

    /// See [`RuleState::paused`].
    pub(super) fn paused(&mut self, now: Instant) {
        self.state.paused(now);
    }

    /// Takes in what a condition reported.
    pub(super) fn take(&mut self, now: Instant, update: Update) {
        self.gates.take(now, update);
        self.state.observe(now, self.gates.all_open());
    }

    /// The server took a removal of `taints`, and this is the Node afterwards.
    pub(super) fn removed(&mut self, now: Instant, taints: &[Taint], node: &NodeView) {
        let matcher = &self.rule().taint;
        if !self.is_about(taints) {
            return;
        }
        let mine = taints.iter().filter(|taint| matcher.matches(taint));
        let mut last_removal = self.last_removal;
        let rule = &self.rule().name;
        for taint in mine {
            let Taint {
                key, value, effect, ..
            } = taint;
            let value = value.as_deref().unwrap_or_default();
            if node
                .taints
                .iter()
                .any(|left| left.key == *key && left.effect == *effect)
            {
                warn!(
                    rule,
                    key, value, effect, "the server took the removal, and the taint is there again"
                );
            } else {
                info!(rule, key, value, effect, "removed the taint");
                last_removal = Some(Timestamp::now());
            }
        }
        self.last_removal = last_removal;
        self.unanswered = false;
        self.state.removed(now);
        self.enter(now, Decision::Absent);
    }

    /// Whether it is not known if a removal took effect.
    pub(super) fn set_unanswered(&mut self, unanswered: bool) {
        self.unanswered = unanswered;
    }

    /// The server refuses to have `taint` removed. `first`: it has not said so in these words before.
    pub(super) fn denied(&mut self, taint: &Taint, message: &str, first: bool) {
        if first {
            let rule = &self.rule().name;
            warn!(
                rule,
                key = taint.key,
                effect = taint.effect,
                error = message,
                "the server refused the removal"
            );
        }
        self.denied = Some(message.to_owned());
    }

    pub(super) fn status(&self) -> RuleStatus {
        let rule = self.rule();
        RuleStatus {
            name: rule.name.clone(),
            taint: rule.taint.to_string(),
            decision: self.decision().as_str(),
            meaning: self.decision().meaning(),
            since: self.since,
            overdue: self.state.is_overdue(),
            dry_run: rule.dry_run,
            gates: self.gates.status().to_vec(),
            last_removal: self.last_removal,
            denied: self.denied.clone(),
        }
    }

    fn enter(&mut self, now: Instant, decision: Decision) {
        self.since = Timestamp::now();
        if !decision.is_tainted() {
            self.denied = None;
        }
        let worth_a_line = match decision {
            Decision::Held => Some("holding: Karpenter has not registered the node yet"),
            Decision::Ready if self.rule().dry_run => Some("would remove the taint (dry run)"),
            _ => None,
        };
        let rule = &self.state.rule().name;
        if let Some(line) = worth_a_line.filter(|_| self.allowance.take(now)) {
            info!(rule, "{line}");
        } else {
            debug!(rule, decision = decision.as_str(), "decided");
        }
    }

    fn tell(&mut self, now: Instant, occurrence: Occurrence) {
        let unanswered = match occurrence {
            Occurrence::Tainted | Occurrence::RemovedByOther { .. } => {
                std::mem::take(&mut self.unanswered)
            }
            Occurrence::Deadline(_) | Occurrence::Fight => false,
        };
        let allowance = match occurrence {
            Occurrence::Tainted | Occurrence::RemovedByOther { .. } => &mut self.allowance,
            Occurrence::Deadline(_) | Occurrence::Fight => &mut self.rare_allowance,
        };
        if !allowance.take(now) {
            debug!(
                rule = self.rule().name,
                ?occurrence,
                "not told: it happens too often"
            );
            return;
        }
        let (rule, taint) = (&self.rule().name, self.rule().taint.to_string());
        match occurrence {
            Occurrence::Tainted => info!(rule, taint, "saw the taint"),
            Occurrence::RemovedByOther { .. } if unanswered => {
                info!(
                    rule,
                    taint, "found the taint gone after a removal without an answer"
                );
            }
            Occurrence::RemovedByOther { ready: true } => {
                info!(rule, taint, "found the taint gone already");
            }
            Occurrence::RemovedByOther { ready: false } => {
                warn!(
                    rule,
                    taint, "somebody else removed the taint before the rule was ready"
                );
            }
            Occurrence::Deadline(action) => {
                let (after, action) = (self.rule().deadline.after.as_secs_f64(), action.as_str());
                let gates = self
                    .gates
                    .status()
                    .iter()
                    .filter(|gate| gate.state != "open");
                let gates: Vec<_> = gates
                    .map(|gate| format!("{}: {}", gate.name, gate.message))
                    .collect();
                let waits_for = gates.join("; ");
                warn!(
                    rule,
                    taint, after, action, waits_for, "the taint has been there for too long"
                );
            }
            Occurrence::Fight => warn!(
                rule,
                taint, "somebody keeps putting the taint back; slowing down"
            ),
        }
    }
}

#[cfg(test)]
mod tests;
