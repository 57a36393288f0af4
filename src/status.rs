//! The one snapshot of what the agent knows and does. `/statusz`, `/readyz` and `/healthz` are read from it.

use jiff::Timestamp;
use serde::Serialize;

use crate::gate::run::GateStatus;
use crate::incident::Incident;

/// Everything that people may want to know.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Status {
    /// Of the program.
    pub version: &'static str,
    /// The own Node.
    pub node: NodeStatus,
    /// Where the rules come from.
    pub configuration: ConfigurationStatus,
    /// The connection to the API server.
    pub api: ApiStatus,
    /// Whether an admission policy holds the account.
    pub policy: PolicyStatus,
    /// In the order of the configuration.
    pub rules: Vec<RuleStatus>,
}

/// The own Node.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct NodeStatus {
    /// As configured.
    pub name: String,
    /// Whether it has been seen since the start.
    pub seen: bool,
    /// Of the newest Node known; `None` while it is not known to exist.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resource_version: Option<u64>,
}

/// The active configuration, and what became of newer ones.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ConfigurationStatus {
    /// The file's name, or `command line`.
    pub source: String,
    /// SHA-256 of the active text, in hexadecimal: what `sha256sum` prints for the file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sha256: Option<String>,
    /// When it became active.
    pub loaded: Timestamp,
    /// How many configurations became active after the first.
    pub reloads: u64,
    /// How many times the file was bad, in another way than just before.
    pub failed_reloads: u64,
    /// Whether the file is bad now. The active configuration is then the last one that was good.
    pub failing: bool,
    /// Why the file is bad, or was the last time that it was.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_failure: Option<Incident>,
}

/// The connection to the API server.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ApiStatus {
    /// Whether the watch is up.
    pub watching: bool,
    /// The last failure of any request.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_error: Option<Incident>,
}

/// Whether an admission policy holds the account that the process acts as.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PolicyStatus {
    /// One of [`Self::WORDS`].
    pub state: &'static str,
    /// Which policy, or what to do, or why nothing is known.
    pub message: String,
}

impl PolicyStatus {
    /// Every word of `state`.
    pub const WORDS: [&'static str; 4] = ["held", "not-held", "unknown", "unchecked"];
}

/// A rule.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RuleStatus {
    /// Of the rule.
    pub name: String,
    /// `KEY[=VALUE][:EFFECT]`.
    pub taint: String,
    /// See [`crate::rule::Decision`].
    pub decision: &'static str,
    /// What that means, in a few words.
    pub meaning: &'static str,
    /// Whether the rule has done all it is going to do with the Node as it is.
    pub done: bool,
    /// Since when that has been the decision.
    pub since: Timestamp,
    /// Whether the taint has been there for longer than the rule's `deadline`.
    pub overdue: bool,
    /// Whether the rule writes nothing.
    pub dry_run: bool,
    /// In the order of the configuration.
    pub gates: Vec<GateStatus>,
    /// When this process last removed the taint.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_removal: Option<Timestamp>,
    /// When this process last put the taint back.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_put_back: Option<Timestamp>,
    /// The server's words, while it refuses to have the taint removed or put back.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub denied: Option<String>,
    /// The server's words, or what went wrong on the way to it, while the rule's condition cannot be written.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub publish_failure: Option<String>,
}

#[cfg(test)]
pub(crate) mod tests;
