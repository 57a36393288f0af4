//! The gates of a rule, and their state together.

use std::time::{Duration, Instant};

use jiff::Timestamp;

use super::last_gate::last_to_open;
use super::reason_to_wait;
use super::runner::{GateRunner, GateStatus};
use crate::config::{Order, Rule};
use crate::gate::report::Update;
use crate::gate::{GateContext, NodeSnapshot, State};

pub struct RuleGates {
    gates: Vec<GateRunner>,
    order: Order,
    /// The round under way; `None` at rest.
    round: Option<u64>,
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
            order: Order::of(&rule.gates),
            round: None,
            observe_node_at: None,
            context,
        }
    }

    /// The gates of another version of the rule. New gates, and those that directly or indirectly wait for new ones, rest until
    /// the next [`Self::run`]. The others continue.
    pub fn reconfigure(&mut self, now: Instant, rule: &Rule) {
        self.context.taints = rule.taints().collect();
        let mut known = std::mem::take(&mut self.gates);
        let gates = rule.gates.iter().map(|spec| {
            let unchanged = known.iter().position(|gate| gate.spec == *spec);
            unchanged.map_or_else(
                || (GateRunner::new(&rule.name, spec), true),
                |index| (known.swap_remove(index), false),
            )
        });
        let mut begins: Vec<bool>;
        (self.gates, begins) = gates.unzip();
        self.order = Order::of(&rule.gates);
        for index in self.order.sequence() {
            // What the gate found is from before the new one was open.
            if self.order.before(*index).iter().any(|other| begins[*other]) {
                self.gates[*index].rest(now);
                begins[*index] = true;
            }
        }
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
        self.gates.iter().all(GateRunner::is_known)
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

    /// Evaluates the gates from now on, and at once those of the Node itself. Starts again unless `round` is under way
    /// already.
    pub fn run(&mut self, now: Instant, round: u64, node: &NodeSnapshot) {
        if self.round != Some(round) {
            self.rest(now);
            self.round = Some(round);
        }
        let valid_for = self.follow_order(now, Some(node));
        self.observe_node_at = valid_for.map(|valid_for| now + valid_for);
    }

    /// Ends the evaluation.
    pub fn rest(&mut self, now: Instant) {
        self.round = None;
        self.observe_node_at = None;
        for gate in &mut self.gates {
            gate.rest(now);
        }
    }

    /// When [`Self::run`] must observe the Node again, even if it does not change.
    pub fn observe_node_at(&self) -> Option<Instant> {
        self.observe_node_at
    }

    /// Applies an update if it is of one of these gates, and returns whether it is.
    pub fn apply(&mut self, now: Instant, update: &Update) -> bool {
        let is_own = self.gates.iter_mut().any(|gate| gate.apply(now, update));
        if is_own {
            self.follow_order(now, None);
        }
        is_own
    }

    /// Starts each gate for which it is time, and stops each one that must wait for others. Evaluates the checks of `node`
    /// itself, and returns for how long the results are valid if the Node does not change; `None` is forever.
    fn follow_order(&mut self, now: Instant, node: Option<&NodeSnapshot>) -> Option<Duration> {
        let clock = Timestamp::now();
        let mut valid_for = None;
        for index in self.order.sequence() {
            let before = self.order.before(*index).iter();
            let before = before.map(|other| &self.gates[*other]);
            // One that is unknown, for example without the API server, may close and open again meanwhile.
            let not_open = before.filter(|gate| gate.status.state != State::Open);
            let reason = reason_to_wait(not_open.map(|gate| gate.spec.name()));
            let gate = &mut self.gates[*index];
            match reason {
                Some(reason) => gate.wait(now, reason),
                None => gate.run(now, &self.context),
            }
            let valid = node.and_then(|node| gate.observe_node(now, node, clock));
            valid_for = valid_for.into_iter().chain(valid).min();
        }
        valid_for
    }
}

#[cfg(test)]
mod tests;
