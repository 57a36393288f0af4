//! A rule at work: its decision, its gates, and what people are told of both.

use std::time::{Duration, Instant};

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Taint;
use tokio::sync::mpsc;
use tracing::{debug, info, warn};

use crate::config::Rule;
use crate::gate::runner::{Gates, Update};
use crate::gate::Outcome;
use crate::node::view::NodeView;
use crate::rule::{Decision, Occurrence, RuleState};
use crate::status::{GateStatus, RuleStatus};

/// A reason that keeps changing is told at most so often.
const REASON_PERIOD: Duration = Duration::from_secs(10);

/// A rule, its gates and their history.
pub(super) struct RuleAtWork {
    state: RuleState,
    gates: Gates,
    /// For each gate, when its reason was last told.
    told: Vec<Option<Instant>>,
    status: RuleStatus,
}

impl RuleAtWork {
    pub(super) fn new(index: usize, rule: Rule, updates: mpsc::Sender<Update>) -> Self {
        let gates = Gates::new(index, rule.gates.clone(), updates);
        let now = Timestamp::now();
        let status = RuleStatus {
            name: rule.name.clone(),
            taint: rule.taint.to_string(),
            decision: Decision::NoNode.as_str(),
            since: now,
            dry_run: rule.dry_run,
            gates: gates.states().map(|(name, outcome)| gate_status(name, &outcome, now)).collect(),
            last_removal: None,
            denied: None,
        };
        Self { told: vec![None; rule.gates.len()], state: RuleState::new(rule), gates, status }
    }

    pub(super) fn rule(&self) -> &Rule {
        self.state.rule()
    }

    pub(super) fn decision(&self) -> Decision {
        self.state.decision()
    }

    pub(super) fn status(&self) -> &RuleStatus {
        &self.status
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

    pub(super) fn all_open(&self) -> bool {
        self.gates.all_open()
    }

    /// Decides anew, and runs the gates or lets them rest by what comes out.
    pub(super) fn step(&mut self, now: Instant, node: Option<&NodeView>) {
        let before = self.state.decision();
        let occurrence = self.state.step(now, node, self.gates.all_open());
        let decision = self.state.decision();
        if decision.runs_gates() {
            self.gates.run(self.state.round());
        } else {
            self.gates.rest();
        }
        self.refresh_gates(now);
        if let Some(occurrence) = occurrence {
            self.tell(occurrence);
        }
        if before != decision {
            self.enter(decision);
        }
    }

    /// Takes in what a probe found.
    pub(super) fn take(&mut self, now: Instant, update: Update) {
        self.gates.take(update);
        self.refresh_gates(now);
    }

    /// A write of ours took `taint` off. `more`: the Node has another taint of this rule.
    pub(super) fn removed(&mut self, now: Instant, taint: &Taint, more: bool) {
        let value = taint.value.as_deref().unwrap_or_default();
        info!(rule = self.status.name, key = taint.key, value, effect = taint.effect, "removed the taint");
        if !more {
            self.state.removed(now);
            self.status.last_removal = Some(Timestamp::now());
        }
    }

    /// The server refuses to have `taint` removed. `first`: it has not said so in these words before.
    pub(super) fn denied(&mut self, taint: &Taint, message: &str, first: bool) {
        if first {
            let rule = &self.status.name;
            warn!(rule, key = taint.key, effect = taint.effect, error = message, "the server refuses the removal");
        }
        self.status.denied = Some(message.to_owned());
    }

    fn enter(&mut self, decision: Decision) {
        self.status.decision = decision.as_str();
        self.status.since = Timestamp::now();
        let (rule, taint) = (&self.status.name, &self.status.taint);
        match decision {
            Decision::Held => info!(rule, taint, "holding: Karpenter has not registered the node yet"),
            Decision::Ready if self.status.dry_run => info!(rule, taint, "would remove the taint (dry run)"),
            Decision::Absent | Decision::NotSelected => self.status.denied = None,
            decision => debug!(rule, taint, decision = decision.as_str(), "decided"),
        }
    }

    fn tell(&self, occurrence: Occurrence) {
        let RuleStatus { name: rule, taint, .. } = &self.status;
        match occurrence {
            Occurrence::Tainted => info!(rule, taint, "saw the taint"),
            Occurrence::RemovedByOther { ready: true } => info!(rule, taint, "found the taint gone already"),
            Occurrence::RemovedByOther { ready: false } => {
                warn!(rule, taint, "somebody else removed the taint while a gate was not open");
            }
            Occurrence::Fight => warn!(rule, taint, "somebody keeps putting the taint back; slowing down"),
        }
    }

    /// Brings the gates' part of the status up to date, and tells what has changed.
    fn refresh_gates(&mut self, now: Instant) {
        for (index, (name, outcome)) in self.gates.states().enumerate() {
            let known = &mut self.status.gates[index];
            let changed = known.state != outcome.state();
            if !changed && known.message == outcome.message() {
                continue;
            }
            let since = if changed { Timestamp::now() } else { known.since };
            let rule = &self.status.name;
            let (state, message) = (outcome.state(), outcome.message());
            let due = self.told[index].is_none_or(|told| now.duration_since(told) >= REASON_PERIOD);
            if matches!(outcome, Outcome::Unknown(_)) || (!changed && !due) {
                debug!(rule, gate = name, state, message, "evaluated the gate");
            } else {
                info!(rule, gate = name, state, message, "evaluated the gate");
                self.told[index] = Some(now);
            }
            *known = gate_status(name, &outcome, since);
        }
    }
}

fn gate_status(name: &str, outcome: &Outcome, since: Timestamp) -> GateStatus {
    GateStatus { name: name.to_owned(), state: outcome.state(), message: outcome.message().to_owned(), since }
}
