//! The gates of a rule: one task a condition, only while the rule has use for them.

use futures_util::future::join_all;
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use super::busy::Busy;
use super::observation::{self, NodeSight, Sight};
use super::report::{Place, Reporter, Update};
use super::{Outcome, State, probe};
use crate::config::{Condition, Gate};

/// What the gates of all rules share.
#[derive(Clone)]
pub struct Surroundings {
    /// Where changes are sent to.
    pub updates: mpsc::Sender<Update>,
    /// What observations look at.
    pub sight: Sight,
}

/// The gates of one rule and what they said last.
pub struct Gates {
    rule: usize,
    specs: Vec<Gate>,
    outcomes: Vec<Vec<Outcome>>,
    /// For each condition.
    busy: Vec<Vec<Busy>>,
    /// The round under way; `None` while the gates rest.
    round: Option<u64>,
    tasks: JoinSet<()>,
    surroundings: Surroundings,
}

impl Gates {
    /// The gates of the `rule`-th rule, at rest.
    #[must_use]
    pub fn new(rule: usize, specs: Vec<Gate>, surroundings: Surroundings) -> Self {
        let outcomes = all(&specs, &Outcome::at_rest());
        let busy = specs
            .iter()
            .map(|gate| gate.conditions().iter().map(|_| Busy::default()).collect())
            .collect();
        Self {
            rule,
            specs,
            outcomes,
            busy,
            round: None,
            tasks: JoinSet::new(),
            surroundings,
        }
    }

    /// Evaluates the gates from now on. Starts afresh unless `round` is under way already.
    pub fn run(&mut self, round: u64) {
        if self.round == Some(round) {
            return;
        }
        self.rest();
        self.round = Some(round);
        self.outcomes = all(&self.specs, &Outcome::unevaluated());
        for (gate, spec) in self.specs.iter().enumerate() {
            for (condition, spec) in spec.conditions().iter().enumerate() {
                let place = Place {
                    rule: self.rule,
                    round,
                    gate,
                    condition,
                };
                let reporter = Reporter::new(place, self.surroundings.updates.clone());
                match spec.clone() {
                    Condition::Probe(spec) => self.tasks.spawn(probe::evaluate(
                        spec,
                        self.busy[gate][condition].clone(),
                        reporter,
                    )),
                    Condition::Observation(spec) => self.tasks.spawn(observation::follow(
                        spec,
                        self.surroundings.sight.clone(),
                        reporter,
                    )),
                };
            }
        }
    }

    /// Ends every evaluation, with its connections, processes and watches, and forgets what it found.
    pub fn rest(&mut self) {
        if self.round.take().is_some() {
            self.tasks = JoinSet::new();
            self.outcomes = all(&self.specs, &Outcome::at_rest());
        }
    }

    /// Judges the gates that look at the Node itself.
    pub fn see(&mut self, node: &NodeSight) {
        if self.round.is_none() {
            return;
        }
        for (spec, outcomes) in self.specs.iter().zip(&mut self.outcomes) {
            for (condition, outcome) in spec.conditions().iter().zip(outcomes) {
                if let Condition::Observation(spec) = condition
                    && let Some(seen) = observation::of_node(spec, node)
                {
                    *outcome = seen;
                }
            }
        }
    }

    /// Takes in an update, unless it is of an earlier round.
    pub fn take(&mut self, update: Update) {
        let Place {
            round,
            gate,
            condition,
            ..
        } = update.place;
        if self.round == Some(round) {
            self.outcomes[gate][condition] = update.outcome;
        }
    }

    /// Each gate's name and state.
    pub fn states(&self) -> impl Iterator<Item = (&str, Outcome)> {
        let gates = self.specs.iter().zip(&self.outcomes);
        gates.map(|(gate, outcomes)| (gate.name(), state(gate, outcomes)))
    }

    /// Whether each has been evaluated in this round.
    #[must_use]
    pub fn are_evaluated(&self) -> bool {
        self.outcomes.iter().flatten().all(Outcome::is_evaluated)
    }

    /// What they say together.
    #[must_use]
    pub fn together(&self) -> State {
        let mut together = State::Open;
        for (_, outcome) in self.states() {
            match outcome.state() {
                State::Open => {}
                State::Closed => return State::Closed,
                State::Unknown => together = State::Unknown,
            }
        }
        together
    }
}

/// The same outcome for every condition.
fn all(gates: &[Gate], outcome: &Outcome) -> Vec<Vec<Outcome>> {
    let outcomes = |gate: &Gate| vec![outcome.clone(); gate.conditions().len()];
    gates.iter().map(outcomes).collect()
}

/// Evaluates every probe of `gates` once, delays and thresholds aside. Gives each gate's name and state. Observations
/// need an agent with an API server, and are unknown.
pub async fn once(gates: &[Gate]) -> Vec<(&str, Outcome)> {
    let evaluations = gates.iter().map(|gate| async move {
        let outcomes = gate.conditions().iter().map(|condition| async move {
            match condition {
                Condition::Probe(spec) => probe::once(spec).await,
                Condition::Observation(_) => observation::without_api_server(),
            }
        });
        (gate.name(), state(gate, &join_all(outcomes).await))
    });
    join_all(evaluations).await
}

/// The state of a gate by those of its conditions. A group is open if a member is, unknown if one that is unknown could
/// be, else closed with every member's reason.
fn state(gate: &Gate, outcomes: &[Outcome]) -> Outcome {
    if let (Gate::Single(_), [outcome]) = (gate, outcomes) {
        return outcome.clone();
    }
    let messages = |wanted: fn(&Outcome) -> bool| {
        let named = gate
            .conditions()
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
