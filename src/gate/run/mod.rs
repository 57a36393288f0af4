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
use crate::config::{Check, Gate, Order};
pub use rule_gates::RuleGates;
pub use runner::GateStatus;

/// Evaluates every probe of `gates` once, without delays and thresholds, those that wait for others after them. Returns each
/// gate's name and outcome. Observations are unknown. `node_name`: the name of the own Node, if it is known.
pub async fn evaluate_once<'g>(
    gates: &'g [Gate],
    node_name: Option<&str>,
) -> Vec<(&'g str, Outcome)> {
    let order = Order::of(gates);
    let mut outcomes = vec![Outcome::Unevaluated; gates.len()];
    let mut left = order.sequence().to_vec();
    while !left.is_empty() {
        // The first one waits for none of the others.
        let waits = |gate: &usize| order.before(*gate).iter().any(|other| left.contains(other));
        let (later, now): (Vec<_>, Vec<_>) = left.iter().copied().partition(waits);
        let evaluations = now.iter().map(|gate| {
            let not_open = order.before(*gate).iter().copied();
            let not_open = not_open.filter(|other| !outcomes[*other].is_open());
            let reason = reason_to_wait(not_open.map(|other| gates[other].name()));
            let gate = &gates[*gate];
            async move {
                match reason {
                    Some(reason) => Outcome::Waiting(reason),
                    None => evaluate(gate, node_name).await,
                }
            }
        });
        let evaluated = join_all(evaluations).await;
        for (gate, outcome) in now.into_iter().zip(evaluated) {
            outcomes[gate] = outcome;
        }
        left = later;
    }
    gates.iter().map(Gate::name).zip(outcomes).collect()
}

async fn evaluate(gate: &Gate, node_name: Option<&str>) -> Outcome {
    let outcomes = gate.checks().iter().map(|check| async move {
        match check {
            Check::Probe(spec) => probe::evaluate(spec, node_name, &ProbeLock::default()).await,
            Check::Observation(_) => observation::without_api_server(),
        }
    });
    group::outcome(gate, &join_all(outcomes).await)
}

/// Why a gate is not asked while these gates, which must be open first, are not. `None` if there are none.
fn reason_to_wait<'g>(not_open: impl Iterator<Item = &'g str>) -> Option<String> {
    let names = not_open.collect::<Vec<_>>().join(", ");
    (!names.is_empty()).then(|| format!("waits for {names}"))
}
