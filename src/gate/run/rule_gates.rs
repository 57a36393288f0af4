//! The gates of a rule, and what people are told of them.

use std::time::Instant;

use jiff::Timestamp;
use serde::Serialize;
use tracing::{debug, info};

use super::{GateContext, GateRunner};
use crate::config::{Gate, Rule};
use crate::gate::observation::NodeSnapshot;
use crate::gate::report::Update;
use crate::gate::{Outcome, State};
use crate::rate_limit::Allowance;

/// Gates whose changes are logged and kept as [`GateStatus`].
pub struct RuleGates {
    rule: String,
    gates: Vec<ObservedGate>,
    /// When one may have changed by time alone.
    changes_at: Option<Instant>,
    context: GateContext,
}

/// A gate, as `/statusz` shows it.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct GateStatus {
    pub name: String,
    pub state: State,
    /// What was seen, or the reason why it is not open.
    pub message: String,
    /// Since when that has been the state.
    pub since: Timestamp,
}

struct ObservedGate {
    gate: GateRunner,
    status: GateStatus,
    /// One that flaps must not fill the log.
    allowance: Allowance,
}

impl RuleGates {
    /// The gates of `rule`, at rest.
    pub fn new(rule: &Rule, context: GateContext) -> Self {
        Self {
            rule: rule.name.clone(),
            gates: rule.gates.iter().map(ObservedGate::new).collect(),
            changes_at: None,
            context,
        }
    }

    /// The gates of another version of the rule. Those that were there before go on as if nothing had happened; new
    /// ones rest until the next [`Self::run`].
    pub fn reconfigure(&mut self, specs: &[Gate]) {
        let mut known = std::mem::take(&mut self.gates);
        let gates = specs.iter().map(|spec| {
            let known_at = known.iter().position(|known| known.gate.spec() == spec);
            known_at.map_or_else(|| ObservedGate::new(spec), |index| known.swap_remove(index))
        });
        self.gates = gates.collect();
    }

    /// In the order of the configuration.
    pub fn status(&self) -> impl Iterator<Item = &GateStatus> {
        self.gates.iter().map(|gate| &gate.status)
    }

    /// The gates that are not open, with their reasons.
    pub fn waits_for(&self) -> String {
        let gates = self.status().filter(|gate| gate.state != State::Open);
        let gates: Vec<_> = gates
            .map(|gate| format!("{}: {}", gate.name, gate.message))
            .collect();
        gates.join("; ")
    }

    /// Whether each has been evaluated in this round.
    pub fn are_evaluated(&self) -> bool {
        self.gates.iter().all(|gate| gate.gate.is_evaluated())
    }

    /// See [`GateRunner::is_open_but_for_api`].
    pub fn are_open_but_for_api(&self) -> bool {
        let mut gates = self.gates.iter();
        gates.all(|gate| gate.gate.is_open_but_for_api())
    }

    /// What they say together.
    pub fn together(&self) -> State {
        let mut together = State::Open;
        for gate in &self.gates {
            match gate.gate.state().state() {
                State::Open => {}
                State::Closed => return State::Closed,
                State::Unknown => together = State::Unknown,
            }
        }
        together
    }

    /// See [`GateRunner::run`].
    pub fn run(&mut self, now: Instant, round: u64) {
        for gate in &mut self.gates {
            gate.gate.run(round, &self.context);
            gate.observe(now, &self.rule);
        }
    }

    /// See [`GateRunner::rest`].
    pub fn rest(&mut self, now: Instant) {
        self.changes_at = None;
        for gate in &mut self.gates {
            gate.gate.rest();
            gate.observe(now, &self.rule);
        }
    }

    /// See [`GateRunner::see`].
    pub fn see(&mut self, now: Instant, node: &NodeSnapshot) {
        let clock = Timestamp::now();
        let mut lasts = None;
        for gate in &mut self.gates {
            lasts = lasts.into_iter().chain(gate.gate.see(node, clock)).min();
            gate.observe(now, &self.rule);
        }
        self.changes_at = lasts.map(|lasts| now + lasts);
    }

    /// When they must look at the Node again, even if it does not change.
    pub fn changes_at(&self) -> Option<Instant> {
        self.changes_at
    }

    /// Takes in an update if it is of one of these gates, and gives whether it is.
    pub fn take(&mut self, now: Instant, update: &Update) -> bool {
        let mut gates = self.gates.iter_mut();
        let gate = gates.find_map(|gate| gate.gate.take(update).then_some(gate));
        gate.is_some_and(|gate| {
            gate.observe(now, &self.rule);
            true
        })
    }
}

impl ObservedGate {
    fn new(spec: &Gate) -> Self {
        let gate = GateRunner::new(spec.clone());
        Self {
            status: gate_status(spec.name(), &gate.state(), Timestamp::now()),
            gate,
            allowance: Allowance::default(),
        }
    }

    fn observe(&mut self, now: Instant, rule: &str) {
        let outcome = self.gate.state();
        let changed = self.status.state != outcome.state();
        if !changed && self.status.message == outcome.message() {
            return;
        }
        let (gate, reason) = (self.gate.spec().name(), outcome.message());
        let state = outcome.state().as_str();
        if outcome.is_evaluated() && self.allowance.take(now) {
            info!(rule, gate, state, reason, "evaluated the gate");
        } else {
            debug!(rule, gate, state, reason, "evaluated the gate");
        }
        let since = if changed {
            Timestamp::now()
        } else {
            self.status.since
        };
        self.status = gate_status(gate, &outcome, since);
    }
}

fn gate_status(name: &str, outcome: &Outcome, since: Timestamp) -> GateStatus {
    GateStatus {
        name: name.to_owned(),
        state: outcome.state(),
        message: outcome.message().to_owned(),
        since,
    }
}
