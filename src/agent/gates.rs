//! The gates of a rule, and what people are told of them.

use std::time::Instant;

use jiff::Timestamp;
use tracing::{debug, info};

use crate::config::Rule;
use crate::gate::observation::NodeSight;
use crate::gate::report::Update;
use crate::gate::set::{Gates, Surroundings};
use crate::gate::{Outcome, State};
use crate::logging::Allowance;
use crate::status::GateStatus;

/// Gates whose changes are logged and kept as [`GateStatus`].
pub(crate) struct ObservedGates {
    rule: String,
    gates: Gates,
    status: Vec<GateStatus>,
    /// For each gate: one that flaps must not fill the log.
    allowances: Vec<Allowance>,
}

impl ObservedGates {
    /// The gates of `rule`, the `index`-th of the configuration, at rest.
    pub(crate) fn new(index: usize, rule: &Rule, surroundings: Surroundings) -> Self {
        let gates = Gates::new(index, rule.gates.clone(), surroundings);
        let now = Timestamp::now();
        let status: Vec<_> = gates
            .states()
            .map(|(name, outcome)| gate_status(name, &outcome, now))
            .collect();
        Self {
            rule: rule.name.clone(),
            gates,
            allowances: vec![Allowance::default(); status.len()],
            status,
        }
    }

    pub(crate) fn status(&self) -> &[GateStatus] {
        &self.status
    }

    /// The gates that are not open, with their reasons.
    pub(crate) fn waits_for(&self) -> String {
        let gates = self.status.iter().filter(|gate| gate.state != "open");
        let gates: Vec<_> = gates
            .map(|gate| format!("{}: {}", gate.name, gate.message))
            .collect();
        gates.join("; ")
    }

    /// Whether each has been evaluated in this round.
    pub(crate) fn are_evaluated(&self) -> bool {
        self.gates.are_evaluated()
    }

    /// See [`Gates::together`].
    pub(crate) fn together(&self) -> State {
        self.gates.together()
    }

    /// See [`Gates::run`].
    pub(crate) fn run(&mut self, now: Instant, round: u64) {
        self.gates.run(round);
        self.observe(now);
    }

    /// See [`Gates::rest`].
    pub(crate) fn rest(&mut self, now: Instant) {
        self.gates.rest();
        self.observe(now);
    }

    /// See [`Gates::see`].
    pub(crate) fn see(&mut self, now: Instant, node: &NodeSight) {
        self.gates.see(node);
        self.observe(now);
    }

    /// See [`Gates::take`].
    pub(crate) fn take(&mut self, now: Instant, update: Update) {
        self.gates.take(update);
        self.observe(now);
    }

    fn observe(&mut self, now: Instant) {
        for (index, (name, outcome)) in self.gates.states().enumerate() {
            let known = &mut self.status[index];
            let changed = known.state != outcome.state().as_str();
            if !changed && known.message == outcome.message() {
                continue;
            }
            let (rule, reason) = (&self.rule, outcome.message());
            let state = outcome.state().as_str();
            if outcome.is_evaluated() && self.allowances[index].take(now) {
                info!(rule, gate = name, state, reason, "evaluated the gate");
            } else {
                debug!(rule, gate = name, state, reason, "evaluated the gate");
            }
            let since = if changed {
                Timestamp::now()
            } else {
                known.since
            };
            *known = gate_status(name, &outcome, since);
        }
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
