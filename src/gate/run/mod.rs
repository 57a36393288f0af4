//! The gates of a rule: one task a condition, only while the rule has use for it.

mod rule_gates;
pub mod threshold;
mod worker;

use std::time::Duration;

use futures_util::future::join_all;
use jiff::Timestamp;
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use super::Outcome;
use super::observation::{self, NodeSnapshot, ObservationContext};
use super::probe::busy::Busy;
use super::report::{Evaluation, Place, Reporter, Update};
use crate::config::{Check, Gate};
pub use rule_gates::{GateStatus, RuleGates};

/// What the gates of all rules share.
#[derive(Clone)]
pub struct GateContext {
    /// Where changes are sent to.
    pub updates: mpsc::Sender<Update>,
    /// What observations look at.
    pub observation: ObservationContext,
}

/// One gate and what it said last. Dropping it ends its evaluation.
pub struct GateRunner {
    spec: Gate,
    /// For each condition.
    outcomes: Vec<Outcome>,
    /// For each condition.
    busy: Vec<Busy>,
    /// `None` while the gate rests.
    round: Option<Round>,
}

/// A round under way.
struct Round {
    number: u64,
    evaluation: Evaluation,
    _tasks: JoinSet<()>,
}

impl GateRunner {
    /// At rest.
    pub fn new(spec: Gate) -> Self {
        let conditions = spec.checks().len();
        Self {
            spec,
            outcomes: vec![Outcome::AtRest; conditions],
            busy: (0..conditions).map(|_| Busy::default()).collect(),
            round: None,
        }
    }

    /// As configured.
    pub fn spec(&self) -> &Gate {
        &self.spec
    }

    /// Evaluates the gate from now on. Starts afresh unless `round` is under way already.
    pub fn run(&mut self, round: u64, context: &GateContext) {
        if self.round.as_ref().is_some_and(|run| run.number == round) {
            return;
        }
        // Ends what is left of an earlier round, with its connections, processes and watches.
        self.round = None;
        self.outcomes.fill(Outcome::Unevaluated);
        let evaluation = Evaluation::begin();
        let mut tasks = JoinSet::new();
        for (condition, spec) in self.spec.checks().iter().enumerate() {
            let place = Place {
                evaluation,
                condition,
            };
            let reporter = Reporter::new(place, context.updates.clone());
            match spec.clone() {
                Check::Probe(spec) => {
                    let busy = self.busy[condition].clone();
                    tasks.spawn(worker::run(spec, busy, reporter))
                }
                Check::Observation(spec) => {
                    let sight = context.observation.clone();
                    tasks.spawn(observation::follow(spec, sight, reporter))
                }
            };
        }
        self.round = Some(Round {
            number: round,
            evaluation,
            _tasks: tasks,
        });
    }

    /// Ends the evaluation, with its connections, processes and watches, and forgets what it found.
    pub fn rest(&mut self) {
        if self.round.take().is_some() {
            self.outcomes.fill(Outcome::AtRest);
        }
    }

    /// Judges those conditions that are about the Node itself. Gives for how long that lasts, if not for ever, where the
    /// Node does not change. `clock`: now.
    pub fn see(&mut self, node: &NodeSnapshot, clock: Timestamp) -> Option<Duration> {
        let mut lasts = None;
        if self.round.is_none() {
            return lasts;
        }
        for (condition, outcome) in self.spec.checks().iter().zip(&mut self.outcomes) {
            if let Check::Observation(spec) = condition
                && let Some(seen) = observation::of_node(spec, node, clock)
            {
                *outcome = seen.outcome;
                lasts = lasts.into_iter().chain(seen.lasts).min();
            }
        }
        lasts
    }

    /// Takes in an update if it is of the round under way, and gives whether it is.
    pub fn take(&mut self, update: &Update) -> bool {
        let Place {
            evaluation,
            condition,
        } = update.place;
        let is_mine = self
            .round
            .as_ref()
            .is_some_and(|round| round.evaluation == evaluation);
        if is_mine {
            self.outcomes[condition].clone_from(&update.outcome);
        }
        is_mine
    }

    /// Whether every condition has been evaluated in this round.
    pub fn is_evaluated(&self) -> bool {
        self.outcomes.iter().all(Outcome::is_evaluated)
    }

    /// Whether it is open but for what the API server has not told.
    pub fn is_open_but_for_api(&self) -> bool {
        is_open_but_for_api(&self.spec, &self.outcomes)
    }

    /// What its conditions amount to.
    pub fn state(&self) -> Outcome {
        state(&self.spec, &self.outcomes)
    }
}

/// Evaluates every probe of `gates` once, delays and thresholds aside. Gives each gate's name and state. Observations
/// need an agent with an API server, and are unknown.
pub async fn once(gates: &[Gate]) -> Vec<(&str, Outcome)> {
    let evaluations = gates.iter().map(|gate| async move {
        let outcomes = gate.checks().iter().map(|condition| async move {
            match condition {
                Check::Probe(spec) => worker::once(spec).await,
                Check::Observation(_) => observation::without_api_server(),
            }
        });
        (gate.name(), state(gate, &join_all(outcomes).await))
    });
    join_all(evaluations).await
}

/// Whether a gate would be open if each observation that is unknown were open. What is known from the API server counts:
/// an observation that is closed waits for the node, not for the server.
fn is_open_but_for_api(gate: &Gate, outcomes: &[Outcome]) -> bool {
    let mut conditions = gate.checks().iter().zip(outcomes);
    conditions.any(|(condition, outcome)| {
        let is_observation = matches!(condition, Check::Observation(_));
        outcome.is_open() || is_observation && outcome.is_unknown()
    })
}

/// The state of a gate by those of its conditions. A group is open if a member is, unknown if one that is unknown could
/// be, else closed with every member's reason.
fn state(gate: &Gate, outcomes: &[Outcome]) -> Outcome {
    if let (Gate::Single(_), [outcome]) = (gate, outcomes) {
        return outcome.clone();
    }
    let messages = |wanted: fn(&Outcome) -> bool| {
        let named = gate
            .checks()
            .iter()
            .zip(outcomes)
            .filter(|(_, outcome)| wanted(outcome));
        let named =
            named.map(|(member, outcome)| format!("{}: {}", member.name(), outcome.message()));
        named.collect::<Vec<_>>().join("; ")
    };
    if outcomes.iter().any(Outcome::is_open) {
        Outcome::Open(messages(Outcome::is_open))
    } else if outcomes.iter().any(Outcome::is_unknown) {
        Outcome::Unknown(messages(|_| true))
    } else {
        Outcome::Closed(messages(|_| true))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config;

    fn gate(gate: &str) -> Gate {
        let text = format!(
            "apiVersion: untaint/v1alpha1\nkind: UntaintConfiguration\nrules:\n\
             - {{name: r, taint: {{key: t}}, gates: [{gate}]}}"
        );
        config::parse(&text)
            .unwrap()
            .rules
            .remove(0)
            .gates
            .remove(0)
    }

    #[test]
    fn a_gate_waits_for_the_api_server_alone_where_that_can_open_it_and_nothing_is_known_against_it()
     {
        const LOCAL: &str = "{name: l, file: {path: /l}}";
        const READY: &str = "{name: n, nodeCondition: {type: Ready}}";
        let open = || Outcome::Open(String::new());
        let closed = || Outcome::Closed(String::new());
        let unknown = || Outcome::Unknown(String::new());
        let of_api = [
            READY,
            "{name: c, csiDriver: {name: d}}",
            "{name: a, allocatable: {resource: r/r}}",
            "{name: p, pods: {namespace: n, matchLabels: {a: b}}}",
        ];
        for spec in of_api {
            for (outcome, expected) in [
                (open(), true),
                (unknown(), true),
                (Outcome::Unevaluated, true),
                (closed(), false),
            ] {
                let said = is_open_but_for_api(&gate(spec), std::slice::from_ref(&outcome));
                assert_eq!(said, expected, "{spec} {outcome:?}");
            }
        }
        for (outcome, expected) in [
            (open(), true),
            (unknown(), false),
            (Outcome::Unevaluated, false),
            (closed(), false),
        ] {
            let said = is_open_but_for_api(&gate(LOCAL), std::slice::from_ref(&outcome));
            assert_eq!(said, expected, "{outcome:?}");
        }
        let group = gate(&format!("{{name: g, anyOf: [{LOCAL}, {READY}]}}"));
        for (local, ready, expected) in [
            (open(), closed(), true),
            (open(), unknown(), true),
            (closed(), open(), true),
            (closed(), unknown(), true),
            (Outcome::Unevaluated, unknown(), true),
            (closed(), closed(), false),
            (unknown(), closed(), false),
        ] {
            let outcomes = [local, ready];
            let said = is_open_but_for_api(&group, &outcomes);
            assert_eq!(said, expected, "{outcomes:?}");
        }
    }
}
