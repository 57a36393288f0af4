//! Why a command was not done in time.

use tracing::error;

use crate::gate::State;
use crate::gate::run::GateStatus;
use crate::status::{RuleStatus, Status};

/// Why a rule whose gates are open was not ready.
pub(super) const NOT_STABLE: &str =
    "every gate is open, but not for stableFor yet; give it more time with --timeout";

/// Logs why `run --once` was not done.
pub(super) fn log_status(status: &Status) {
    if let Some(incident) = &status.api.last_error
        && !status.api.watching
    {
        error!(
            error = incident.message,
            "not in time: untaint cannot watch the Node"
        );
    }
    if let Some(waits_for) = &status.waits_for {
        error!(
            waits_for,
            "not in time: the taints are gone, but something is still missing"
        );
    }
    for rule in status.rules.iter().filter(|rule| !rule.done) {
        let reason = reason(status, rule);
        log_rule(&rule.name, rule.decision, &reason, &rule.gates);
    }
}

/// Logs why a rule was not ready, and which of its gates are not open.
pub(super) fn log_rule<'g>(
    rule: &str,
    decision: &str,
    reason: &str,
    gates: impl IntoIterator<Item = &'g GateStatus>,
) {
    error!(rule, decision, reason, "the rule was not ready in time");
    for gate in gates.into_iter().filter(|gate| gate.state != State::Open) {
        let (gate, state, reason) = (&gate.name, gate.state.as_str(), &gate.message);
        error!(rule, gate, state, reason, "the gate was not open in time");
    }
}

/// Why the rule has something left to do.
fn reason(status: &Status, rule: &RuleStatus) -> String {
    // Failures that last are in both.
    if let Some(message) = &rule.write_failure {
        return format!("the change of the taint has not succeeded yet: {message}");
    }
    if let Some(message) = &rule.denied {
        return format!("the server refuses to change the taint: {message}");
    }
    match rule.decision {
        "no-node" if status.api.watching => format!(
            "there is no Node {:?}; give --node-name or NODE_NAME the name of the Node that this process runs on",
            status.node.name
        ),
        // An error has a line of its own.
        "no-node" if status.api.last_error.is_none() => {
            format!("{}: the API server has not answered", rule.meaning)
        }
        "stabilizing" => NOT_STABLE.into(),
        "ready" | "lapsed" => "the change of the taint has not succeeded yet".into(),
        _ => rule.meaning.into(),
    }
}
