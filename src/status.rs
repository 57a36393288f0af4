//! What the agent knows and does. `/statusz`, `/readyz`, `/healthz` and the metrics show it.

use jiff::Timestamp;
use serde::Serialize;

use crate::gate::run::GateStatus;
use crate::incident::Incident;

#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Status {
    pub version: &'static str,
    pub node: NodeStatus,
    pub configuration: ConfigurationStatus,
    pub api: ApiStatus,
    pub policy: PolicyStatus,
    /// What `run --once` waits for when every rule is done.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub waits_for: Option<String>,
    /// In the order of the configuration.
    pub rules: Vec<RuleStatus>,
    /// The taints of the Node that no rule removes, although a rule names them or untaint put them back.
    pub left_taints: Vec<LeftTaintStatus>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct NodeStatus {
    pub name: String,
    /// Whether it has been seen since the start.
    pub seen: bool,
    /// `None` while the Node is not known to exist.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resource_version: Option<u64>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ConfigurationStatus {
    /// The file's name, or `command line`.
    pub source: String,
    /// SHA-256 of the active text, in hexadecimal: what `sha256sum` prints for the file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sha256: Option<String>,
    pub loaded: Timestamp,
    pub reloads: u64,
    /// How many times the file was invalid. The same problem again does not count.
    pub failed_reloads: u64,
    /// Whether the file is invalid now. The active configuration is then an earlier one.
    pub failing: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_failure: Option<Incident>,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ApiStatus {
    pub watching: bool,
    /// Of any request.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_error: Option<Incident>,
}

/// Whether an admission policy restricts the account that the process acts as.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PolicyStatus {
    /// One of [`Self::WORDS`].
    pub state: &'static str,
    /// The policy, the remedy, or why nothing is known.
    pub message: String,
}

impl PolicyStatus {
    /// Every word of `state`.
    pub const WORDS: [&'static str; 4] = ["held", "not-held", "unknown", "unchecked"];
}

/// See [`crate::rule::LeftTaint`].
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct LeftTaintStatus {
    /// `KEY[=VALUE]:EFFECT`.
    pub taint: String,
    /// The name of the rule that put it back, or that names it.
    pub rule: String,
    /// One word.
    pub reason: &'static str,
    /// What the word means, and what to do.
    pub message: &'static str,
    /// The server's message while it refuses to let untaint remove the taint.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub denied: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RuleStatus {
    pub name: String,
    /// `KEY[=VALUE][:EFFECT]`.
    pub taint: String,
    /// The taint that `retaint` puts back, if its key is not that of `taint`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retaint_taint: Option<String>,
    /// See [`crate::rule::Decision`].
    pub decision: &'static str,
    pub meaning: &'static str,
    /// Whether the rule has nothing left to do with the Node as it is.
    pub done: bool,
    /// When the decision last changed.
    pub since: Timestamp,
    /// Whether the taint has been there for longer than the rule's `deadline`.
    pub overdue: bool,
    pub dry_run: bool,
    /// In the order of the configuration.
    pub gates: Vec<GateStatus>,
    /// By this process.
    #[serde(flatten)]
    pub last_removal: Option<LastRemoval>,
    /// By this process.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_put_back: Option<Timestamp>,
    /// The server's message while it refuses the change of the taint, or has failed to make it for some time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub denied: Option<String>,
    /// Why the last try to change the taint failed, if the server did not refuse it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub write_failure: Option<String>,
    /// Why the rule's condition cannot be written now.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub publish_failure: Option<String>,
}

/// In JSON, its fields are beside those of the rule.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LastRemoval {
    #[serde(rename = "lastRemoval")]
    pub time: Timestamp,
    /// Since the agent first saw the taint.
    #[serde(
        rename = "lastRemovalWaitedSeconds",
        skip_serializing_if = "Option::is_none"
    )]
    pub waited_seconds: Option<f64>,
    /// The gate that was the last to open. `None` if each was open at its first evaluation, or one was not open.
    #[serde(
        rename = "lastRemovalLastGate",
        skip_serializing_if = "Option::is_none"
    )]
    pub last_gate: Option<String>,
}

#[cfg(test)]
pub(crate) mod tests;
