//! When and how gates are evaluated.

mod group;
mod last_gate;
mod rule_gates;
mod runner;
mod threshold;
mod worker;

use futures_util::future::join_all;

use super::Outcome;
use super::observation;
use super::probe::{self, lock::ProbeLock};
use crate::config::{Check, Gate};
pub use rule_gates::RuleGates;
pub use runner::GateStatus;

/// Evaluates every probe of `gates` once, without delays and thresholds. Returns each gate's name and outcome.
/// Observations are unknown. `node_name`: the name of the own Node, if it is known.
pub async fn evaluate_once<'g>(
    gates: &'g [Gate],
    node_name: Option<&str>,
) -> Vec<(&'g str, Outcome)> {
    let evaluations = gates.iter().map(|gate| async move {
        let outcomes = gate.checks().iter().map(|check| async move {
            match check {
                Check::Probe(spec) => probe::evaluate(spec, node_name, &ProbeLock::default()).await,
                Check::Observation(_) => observation::without_api_server(),
            }
        });
        (gate.name(), group::outcome(gate, &join_all(outcomes).await))
    });
    join_all(evaluations).await
}
