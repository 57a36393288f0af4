//! The gates of a rule, and what people are told of them.

use std::time::Instant;

use jiff::Timestamp;
use tracing::{debug, info};

use crate::config::{Gate, Rule};
use crate::gate::observation::NodeSight;
use crate::gate::report::Update;
use crate::gate::set::{GateAtWork, Surroundings};
use crate::gate::{Outcome, State};
use crate::logging::Allowance;
use crate::status::GateStatus;

/// Gates whose changes are logged and kept as [`GateStatus`].
pub(crate) struct ObservedGates {
    rule: String,
    gates: Vec<ObservedGate>,
    /// When one may have changed by time alone.
    changes_at: Option<Instant>,
    surroundings: Surroundings,
}

struct ObservedGate {
    gate: GateAtWork,
    status: GateStatus,
    /// One that flaps must not fill the log.
    allowance: Allowance,
}

impl ObservedGates {
    /// The gates of `rule`, at rest.
    pub(crate) fn new(rule: &Rule, surroundings: Surroundings) -> Self {
        Self {
            rule: rule.name.clone(),
            gates: rule.gates.iter().map(ObservedGate::new).collect(),
            changes_at: None,
            surroundings,
        }
    }

    /// The gates of another version of the rule. Those that were there before go on as if nothing had happened; new
    /// ones rest until the next [`Self::run`].
    pub(crate) fn reconfigure(&mut self, specs: &[Gate]) {
        let mut known = std::mem::take(&mut self.gates);
        let gates = specs.iter().map(|spec| {
            let known_at = known.iter().position(|known| known.gate.spec() == spec);
            known_at.map_or_else(|| ObservedGate::new(spec), |index| known.swap_remove(index))
        });
        self.gates = gates.collect();
    }

    /// In the order of the configuration.
    pub(crate) fn status(&self) -> impl Iterator<Item = &GateStatus> {
        self.gates.iter().map(|gate| &gate.status)
    }

    /// The gates that are not open, with their reasons.
    pub(crate) fn waits_for(&self) -> String {
        let gates = self.status().filter(|gate| gate.state != "open");
        let gates: Vec<_> = gates
            .map(|gate| format!("{}: {}", gate.name, gate.message))
            .collect();
        gates.join("; ")
    }

    /// Whether each has been evaluated in this round.
    pub(crate) fn are_evaluated(&self) -> bool {
        self.gates.iter().all(|gate| gate.gate.is_evaluated())
    }

    /// See [`GateAtWork::is_open_but_for_api`].
    pub(crate) fn are_open_but_for_api(&self) -> bool {
        let mut gates = self.gates.iter();
        gates.all(|gate| gate.gate.is_open_but_for_api())
    }

    /// What they say together.
    pub(crate) fn together(&self) -> State {
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

    /// See [`GateAtWork::run`].
    pub(crate) fn run(&mut self, now: Instant, round: u64) {
        for gate in &mut self.gates {
            gate.gate.run(round, &self.surroundings);
            gate.observe(now, &self.rule);
        }
    }

    /// See [`GateAtWork::rest`].
    pub(crate) fn rest(&mut self, now: Instant) {
        self.changes_at = None;
        for gate in &mut self.gates {
            gate.gate.rest();
            gate.observe(now, &self.rule);
        }
    }

    /// See [`GateAtWork::see`].
    pub(crate) fn see(&mut self, now: Instant, node: &NodeSight) {
        let clock = Timestamp::now();
        let mut lasts = None;
        for gate in &mut self.gates {
            lasts = lasts.into_iter().chain(gate.gate.see(node, clock)).min();
            gate.observe(now, &self.rule);
        }
        self.changes_at = lasts.map(|lasts| now + lasts);
    }

    /// When they are to see the Node again, although it has not changed.
    pub(crate) fn changes_at(&self) -> Option<Instant> {
        self.changes_at
    }

    /// Takes in an update if it is of one of these gates, and gives whether it is.
    pub(crate) fn take(&mut self, now: Instant, update: &Update) -> bool {
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
        let gate = GateAtWork::new(spec.clone());
        Self {
            status: gate_status(spec.name(), &gate.state(), Timestamp::now()),
            gate,
            allowance: Allowance::default(),
        }
    }

    fn observe(&mut self, now: Instant, rule: &str) {
        let outcome = self.gate.state();
        let changed = self.status.state != outcome.state().as_str();
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
        state: outcome.state().as_str(),
        message: outcome.message().to_owned(),
        since,
    }
}
