//! A rule at work: its decision, its gates, and what people are told of it.

use std::time::Instant;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Taint;
use tracing::{debug, info};

use super::gates::ObservedGates;
use super::teller::Teller;
use crate::config::Rule;
use crate::gate::observation::NodeSight;
use crate::gate::report::Update;
use crate::gate::set::Surroundings;
use crate::logging::Allowance;
use crate::node::view::NodeView;
use crate::notice::{Notice, What};
use crate::rule::{Decision, Occurrence, RuleState};
use crate::status::RuleStatus;

/// A rule, its gates and what became of them.
pub(super) struct RuleAtWork {
    state: RuleState,
    gates: ObservedGates,
    teller: Teller,
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
    pub(super) fn new(
        index: usize,
        rule: Rule,
        surroundings: Surroundings,
        teller: Teller,
    ) -> Self {
        let gates = ObservedGates::new(index, &rule, surroundings);
        Self {
            state: RuleState::new(rule),
            gates,
            teller,
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
            self.occurred(now, occurrence);
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
        if !self.is_about(taints) {
            return;
        }
        let since = |start: Option<Instant>| start.map(|start| now.duration_since(start));
        let since_seen = since(self.state.seen_since());
        let since_ready = since(self.state.stable_at());
        for taint in taints {
            if !self.rule().taint.matches(taint) {
                continue;
            }
            let is_it = |left: &Taint| left.key == taint.key && left.effect == taint.effect;
            let taint = taint.clone();
            if node.taints.iter().any(is_it) {
                self.tell(What::Restored(taint), true);
            } else {
                self.last_removal = Some(Timestamp::now());
                let removed = What::Removed {
                    taint,
                    since_seen,
                    since_ready,
                };
                self.tell(removed, true);
            }
        }
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
        let denied = What::Denied {
            taint: taint.clone(),
            message: message.to_owned(),
        };
        self.tell(denied, first);
        self.denied = Some(message.to_owned());
    }

    pub(super) fn status(&self) -> RuleStatus {
        let rule = self.rule();
        RuleStatus {
            name: rule.name.clone(),
            taint: rule.taint.to_string(),
            decision: self.decision().as_str(),
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

    fn occurred(&mut self, now: Instant, occurrence: Occurrence) {
        let (what, allowance) = match occurrence {
            Occurrence::Tainted => {
                self.unanswered = false;
                (What::Tainted, &mut self.allowance)
            }
            Occurrence::RemovedByOther { ready } => {
                let what = if std::mem::take(&mut self.unanswered) {
                    What::RemovedUnanswered
                } else {
                    What::RemovedByOther { ready }
                };
                (what, &mut self.allowance)
            }
            Occurrence::Deadline(action) => {
                let what = What::Deadline {
                    after: self.state.rule().deadline.after,
                    action,
                    waits_for: self.gates.waits_for(),
                };
                (what, &mut self.rare_allowance)
            }
            Occurrence::Fight => (What::Fight, &mut self.rare_allowance),
        };
        let aloud = allowance.take(now);
        self.tell(what, aloud);
    }

    fn tell(&self, what: What, aloud: bool) {
        let notice = Notice {
            rule: self.rule().name.clone(),
            taint: self.rule().taint.to_string(),
            what,
        };
        self.teller.tell(&notice, aloud);
    }
}

#[cfg(test)]
mod tests;
