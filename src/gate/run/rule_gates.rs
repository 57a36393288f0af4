//! The gates of a rule, and their state together.

use std::time::Instant;

use jiff::Timestamp;

use super::last_gate::last_to_open;
use super::runner::{GateRunner, GateStatus};
use crate::config::Rule;
use crate::gate::report::Update;
use crate::gate::{GateContext, NodeSnapshot, State};

pub struct RuleGates {
    gates: Vec<GateRunner>,
    /// When the gates must observe the Node again, even if it does not change.
    observe_node_at: Option<Instant>,
    context: GateContext,
}

impl RuleGates {
    /// The gates of `rule`, at rest.
    pub fn new(rule: &Rule, mut context: GateContext) -> Self {
        context.taints = rule.taints().collect();
        let gates = rule.gates.iter();
        Self {
            gates: gates
                .map(|spec| GateRunner::new(&rule.name, spec))
                .collect(),
            observe_node_at: None,
            context,
        }
    }

    /// The gates of another version of the rule. Unchanged gates continue; new ones rest until the next [`Self::run`].
    pub fn reconfigure(&mut self, rule: &Rule) {
        self.context.taints = rule.taints().collect();
        let mut known = std::mem::take(&mut self.gates);
        let gates = rule.gates.iter().map(|spec| {
            let unchanged = known.iter().position(|gate| gate.spec == *spec);
            unchanged.map_or_else(
                || GateRunner::new(&rule.name, spec),
                |index| known.swap_remove(index),
            )
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

    /// The last gate to open in this round. `None` if one is not open, if each was open at its first evaluation, and if there
    /// are no gates.
    pub fn last_to_open(&self) -> Option<&str> {
        let gates = self.gates.iter();
        last_to_open(gates.map(|gate| (gate.spec.name(), gate.opening)))
    }

    /// Whether each has been evaluated in this round.
    pub fn are_evaluated(&self) -> bool {
        self.gates.iter().all(GateRunner::is_evaluated)
    }

    /// Whether all would be open if each unknown observation were open.
    pub fn are_open_but_for_api(&self) -> bool {
        self.gates.iter().all(GateRunner::is_open_but_for_api)
    }

    /// Closed if one is closed, else unknown if one is unknown, else open.
    pub fn state(&self) -> State {
        let mut state = State::Open;
        for gate in self.status() {
            match gate.state {
                State::Open => {}
                State::Closed => return State::Closed,
                State::Unknown => state = State::Unknown,
            }
        }
        state
    }

    /// Evaluates the gates from now on. Starts again unless `round` is under way already.
    pub fn run(&mut self, now: Instant, round: u64) {
        for gate in &mut self.gates {
            gate.run(now, round, &self.context);
        }
    }

    /// Ends the evaluation.
    pub fn rest(&mut self, now: Instant) {
        self.observe_node_at = None;
        for gate in &mut self.gates {
            gate.rest(now);
        }
    }

    /// Evaluates the checks of the Node itself.
    pub fn observe_node(&mut self, now: Instant, node: &NodeSnapshot) {
        let clock = Timestamp::now();
        let gates = self.gates.iter_mut();
        let valid_for = gates.filter_map(|gate| gate.observe_node(now, node, clock));
        self.observe_node_at = valid_for.min().map(|valid_for| now + valid_for);
    }

    pub fn observe_node_at(&self) -> Option<Instant> {
        self.observe_node_at
    }

    /// Applies an update if it is of one of these gates, and returns whether it is.
    pub fn apply(&mut self, now: Instant, update: &Update) -> bool {
        self.gates.iter_mut().any(|gate| gate.apply(now, update))
    }
}
