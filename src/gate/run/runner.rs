//! One gate: its tasks, what they report, and the log line of each change.

use std::time::{Duration, Instant};

use jiff::Timestamp;
use serde::Serialize;
use tokio::task::JoinSet;
use tracing::{debug, info};

use super::last_gate::Opening;
use super::{group, worker};
use crate::config::{Check, Gate};
use crate::gate::probe::lock::ProbeLock;
use crate::gate::report::{Reporter, RunId, Update};
use crate::gate::{GateContext, NodeSnapshot, Outcome, State, observation};
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
    /// `None` while the gate is at rest.
    run: Option<Run>,
    /// In the round under way.
    pub(super) opening: Opening,
    pub(super) status: GateStatus,
    /// A gate that flaps must not fill the log.
    log_lines: TokenBucket,
}

/// The tasks of a gate in one round of its rule. Dropping it ends them.
struct Run {
    id: RunId,
    round: u64,
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
            run: None,
            opening: Opening::default(),
            log_lines: TokenBucket::LOG_LINES,
        }
    }

    /// Evaluates the gate from now on. Starts again unless `round` is under way already.
    pub(super) fn run(&mut self, now: Instant, round: u64, context: &GateContext) {
        if self.run.as_ref().is_some_and(|run| run.round == round) {
            return;
        }
        // Ends an earlier round first, with its connections, processes and watches.
        self.run = None;
        self.opening = Opening::default();
        self.outcomes.fill(Outcome::Unevaluated);
        let id = RunId::next();
        let mut tasks = JoinSet::new();
        for (index, spec) in self.spec.checks().iter().enumerate() {
            let reporter = Reporter::new(id, index, context.updates.clone());
            match spec.clone() {
                Check::Probe(spec) => {
                    tasks.spawn(worker::run(spec, self.locks[index].clone(), reporter))
                }
                Check::Observation(spec) => {
                    tasks.spawn(observation::follow(spec, context.clone(), reporter))
                }
            };
        }
        self.run = Some(Run {
            id,
            round,
            _tasks: tasks,
        });
        self.update_status(now);
    }

    /// Ends the evaluation, with its connections, processes and watches, and forgets its outcomes.
    pub(super) fn rest(&mut self, now: Instant) {
        if self.run.take().is_some() {
            self.outcomes.fill(Outcome::AtRest);
            self.update_status(now);
        }
    }

    /// Evaluates the checks of the Node itself. Returns for how long the result is valid if the Node does not change;
    /// `None` is forever.
    pub(super) fn observe_node(
        &mut self,
        now: Instant,
        node: &NodeSnapshot,
        clock: Timestamp,
    ) -> Option<Duration> {
        self.run.as_ref()?;
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
        let is_mine = self.run.as_ref().is_some_and(|run| run.id == update.run);
        if is_mine {
            self.outcomes[update.index].clone_from(&update.outcome);
            self.update_status(now);
        }
        is_mine
    }

    /// Whether every check has been evaluated in this round.
    pub(super) fn is_evaluated(&self) -> bool {
        self.outcomes.iter().all(Outcome::is_evaluated)
    }

    pub(super) fn is_open_but_for_api(&self) -> bool {
        group::is_open_but_for_api(&self.spec, &self.outcomes)
    }

    /// Logs a new state or message.
    fn update_status(&mut self, now: Instant) {
        let outcome = group::outcome(&self.spec, &self.outcomes);
        self.opening
            .observe(now, outcome.is_open(), self.is_evaluated());
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
