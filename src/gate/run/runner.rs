//! One gate: its tasks, what they report, and the log line of each change.

use std::time::{Duration, Instant};

use jiff::Timestamp;
use serde::Serialize;
use tokio::task::JoinSet;
use tracing::{debug, info};

use super::last_gate::Opening;
use super::{group, worker};
use crate::config::{Check, Gate};
use crate::gate::observation::{self, Memory};
use crate::gate::probe::lock::ProbeLock;
use crate::gate::report::{Reporter, RunId, Update};
use crate::gate::{GateContext, NodeSnapshot, Outcome, State};
use crate::rate_limit::TokenBucket;

/// A gate, as `/statusz` shows it.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct GateStatus {
    pub name: String,
    pub state: State,
    /// What the checks found, or the reason why the gate is not open.
    pub message: String,
    /// When the state began.
    pub since: Timestamp,
}

/// A gate and its last outcome. Dropping it ends its evaluation.
pub(super) struct GateRunner {
    rule: String,
    pub(super) spec: Gate,
    /// Of each check.
    outcomes: Vec<Outcome>,
    /// Of each check. Observations do not use theirs.
    locks: Vec<ProbeLock>,
    /// Of each check. Probes do not use theirs.
    memories: Vec<Memory>,
    phase: Phase,
    /// Whether every check has been evaluated in this round, or the gate has waited for others.
    is_known: bool,
    /// In the round under way.
    pub(super) opening: Opening,
    pub(super) status: GateStatus,
    /// A gate that flaps must not fill the log.
    log_lines: TokenBucket,
}

enum Phase {
    /// The rule does not need the gate now.
    AtRest,
    /// For other gates.
    Waiting {
        reason: String,
        /// Whether the gate was closed before that.
        was_closed: bool,
    },
    Running(Run),
}

/// The tasks of a gate. Dropping it ends them, with their connections, processes and watches.
struct Run {
    id: RunId,
    _tasks: JoinSet<()>,
}

impl GateRunner {
    /// A gate at rest.
    pub(super) fn new(rule: &str, spec: &Gate) -> Self {
        let checks = spec.checks();
        let outcomes = vec![Outcome::AtRest; checks.len()];
        let outcome = group::outcome(spec, &outcomes);
        Self {
            rule: rule.to_owned(),
            status: GateStatus {
                name: spec.name().to_owned(),
                state: outcome.state(),
                message: outcome.message().to_owned(),
                since: Timestamp::now(),
            },
            spec: spec.clone(),
            outcomes,
            locks: checks.iter().map(|_| ProbeLock::default()).collect(),
            memories: checks.iter().map(|_| Memory::default()).collect(),
            phase: Phase::AtRest,
            is_known: false,
            opening: Opening::default(),
            log_lines: TokenBucket::LOG_LINES,
        }
    }

    /// Evaluates the gate from now on.
    pub(super) fn run(&mut self, now: Instant, context: &GateContext) {
        self.begin();
        if matches!(self.phase, Phase::Running(_)) {
            return;
        }
        self.outcomes.fill(Outcome::Unevaluated);
        let id = RunId::next();
        let mut tasks = JoinSet::new();
        for (index, spec) in self.spec.checks().iter().enumerate() {
            let reporter = Reporter::new(id, index, context.updates.clone());
            match spec.clone() {
                Check::Probe(spec) => {
                    let (node_name, lock) = (context.node_name.clone(), self.locks[index].clone());
                    tasks.spawn(worker::run(spec, node_name, lock, reporter))
                }
                Check::Observation(spec) => {
                    let (context, memory) = (context.clone(), self.memories[index].clone());
                    tasks.spawn(observation::follow(spec, context, memory, reporter))
                }
            };
        }
        self.phase = Phase::Running(Run { id, _tasks: tasks });
        self.update_status(now);
    }

    /// Ends the evaluation, and forgets its outcomes, until the next [`Self::run`].
    pub(super) fn wait(&mut self, now: Instant, reason: String) {
        self.begin();
        let was_closed = match self.phase {
            Phase::Waiting { was_closed, .. } => was_closed,
            _ => self.status.state == State::Closed,
        };
        self.stop(Phase::Waiting { reason, was_closed });
        self.update_status(now);
    }

    /// Ends the round, and forgets what was found in it.
    pub(super) fn rest(&mut self, now: Instant) {
        if !matches!(self.phase, Phase::AtRest) {
            self.stop(Phase::AtRest);
            self.memories.fill_with(Memory::default);
            self.update_status(now);
        }
    }

    /// Begins a round unless one is under way.
    fn begin(&mut self) {
        if matches!(self.phase, Phase::AtRest) {
            self.opening = Opening::default();
            self.is_known = false;
        }
    }

    fn stop(&mut self, phase: Phase) {
        self.phase = phase;
        self.outcomes.fill(Outcome::AtRest);
    }

    /// Evaluates the checks of the Node itself. Returns for how long the result is valid if the Node does not change;
    /// `None` is forever.
    pub(super) fn observe_node(
        &mut self,
        now: Instant,
        node: &NodeSnapshot,
        clock: Timestamp,
    ) -> Option<Duration> {
        let Phase::Running(_) = self.phase else {
            return None;
        };
        let mut valid_for = None;
        for (spec, outcome) in self.spec.checks().iter().zip(&mut self.outcomes) {
            if let Check::Observation(spec) = spec
                && let Some(seen) = observation::observe_node(spec, node, clock)
            {
                *outcome = seen.outcome;
                valid_for = valid_for.into_iter().chain(seen.valid_for).min();
            }
        }
        self.update_status(now);
        valid_for
    }

    /// Applies an update if it is of the run under way, and returns whether it is.
    pub(super) fn apply(&mut self, now: Instant, update: &Update) -> bool {
        let is_mine = matches!(&self.phase, Phase::Running(run) if run.id == update.run);
        if is_mine {
            self.outcomes[update.index].clone_from(&update.outcome);
            self.update_status(now);
        }
        is_mine
    }

    /// Whether there has been something to say of it in this round: every check has been evaluated, or it waits for gates
    /// that have.
    pub(super) fn is_known(&self) -> bool {
        self.is_known
    }

    /// A gate that waits depends on the gates that it waits for, unless something is known against it.
    pub(super) fn is_open_but_for_api(&self) -> bool {
        match self.phase {
            Phase::Waiting { was_closed, .. } => !was_closed,
            _ => group::is_open_but_for_api(&self.spec, &self.outcomes),
        }
    }

    fn outcome(&self) -> Outcome {
        match &self.phase {
            Phase::Waiting { reason, .. } => Outcome::Waiting(reason.clone()),
            Phase::AtRest | Phase::Running(_) => group::outcome(&self.spec, &self.outcomes),
        }
    }

    /// Logs a new state or message.
    fn update_status(&mut self, now: Instant) {
        let outcome = self.outcome();
        let is_evaluated = self.outcomes.iter().all(Outcome::is_evaluated);
        self.opening.observe(now, outcome.is_open(), is_evaluated);
        self.is_known |= is_evaluated || matches!(self.phase, Phase::Waiting { .. });
        let changed = self.status.state != outcome.state();
        if !changed && self.status.message == outcome.message() {
            return;
        }
        let (rule, gate) = (&self.rule, self.spec.name());
        let (state, reason) = (outcome.state().as_str(), outcome.message());
        if outcome.is_evaluated() && self.log_lines.try_take(now) {
            info!(
                rule,
                gate, state, reason, "the gate's state or reason changed"
            );
        } else {
            debug!(
                rule,
                gate, state, reason, "the gate's state or reason changed"
            );
        }
        if changed {
            self.status.since = Timestamp::now();
        }
        self.status.state = outcome.state();
        outcome.message().clone_into(&mut self.status.message);
    }
}
