//! The shape of the file as validated values: rules, gates and when they run.
//!
//! Durations in fields that end in `Seconds` are seconds, as in core/v1 `Probe`.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Serialize;

use super::checks::Check;
use super::duration;
use super::observed::Observed;
use crate::taint::TaintMatcher;

/// A whole configuration file.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Configuration {
    /// Whether to tell of what happens by Events on the Node too. Needs a permission of its own.
    pub events: bool,
    /// Independent of each other; no two can match the same taint on the same Node.
    pub rules: Vec<Rule>,
}

/// One taint to remove and the gates that must be open first.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Rule {
    /// Unique in the file; an RFC 1123 label.
    pub name: String,
    /// The taint to remove.
    pub taint: TaintMatcher,
    /// The rule applies only to Nodes that have all of these labels, as in a `PodSpec`.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub node_selector: BTreeMap<String, String>,
    /// All must be open. Empty: the rule is ready at once.
    pub gates: Vec<Gate>,
    /// How long every gate must have been open without a break.
    #[serde(serialize_with = "duration::serialize")]
    pub stable_for: Duration,
    /// What happens when the taint has been there for too long.
    pub deadline: Deadline,
    /// Whether, and when, to put the taint back after it has gone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retaint: Option<Retaint>,
    /// Whether to tell the state of the gates by a condition of the Node too.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub publish_condition: Option<PublishCondition>,
    /// Decide and report, write nothing.
    pub dry_run: bool,
}

/// `retaint`: keeps new pods away again when a gate has closed. Running pods are left alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Retaint {
    /// For how long some gate must have been closed (not unknown) without a break. Default and least: 30s.
    #[serde(serialize_with = "duration::serialize")]
    pub after: Duration,
}

impl Retaint {
    /// The least `after`, and the default.
    pub const LEAST: Duration = Duration::from_secs(30);
}

/// `publishCondition`: a condition in the Node's status that says whether the rule is ready.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PublishCondition {
    /// The condition's type, such as `readiness.k8s.io/NetworkReady`.
    #[serde(rename = "type")]
    pub kind: String,
}

/// `deadline`: what happens when a gate never opens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Deadline {
    /// Counted from the first sight of the taint. Default 10m.
    #[serde(serialize_with = "duration::serialize")]
    pub after: Duration,
    /// Default `Keep`.
    pub action: DeadlineAction,
}

impl Default for Deadline {
    fn default() -> Self {
        Self {
            after: Duration::from_mins(10),
            action: DeadlineAction::Keep,
        }
    }
}

/// What to do at the deadline.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum DeadlineAction {
    /// Report it, and go on waiting: the node stays out of use.
    Keep,
    /// Report it, and remove the taint: the node is used as it is.
    Remove,
}

impl DeadlineAction {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Keep, Self::Remove];

    /// As the file spells it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Keep => "Keep",
            Self::Remove => "Remove",
        }
    }
}

impl Rule {
    /// A rule with the defaults of all other fields.
    #[must_use]
    pub fn new(name: impl Into<String>, taint: TaintMatcher, gates: Vec<Gate>) -> Self {
        Self {
            name: name.into(),
            taint,
            node_selector: BTreeMap::new(),
            gates,
            stable_for: Duration::ZERO,
            deadline: Deadline::default(),
            retaint: None,
            publish_condition: None,
            dry_run: false,
        }
    }

    /// Whether `other` is this rule, in another version perhaps: one that removes something else, or from other Nodes,
    /// is another rule.
    #[must_use]
    pub fn is_same(&self, other: &Self) -> bool {
        self.name == other.name
            && self.taint == other.taint
            && self.node_selector == other.node_selector
    }
}

/// What must be so before the taint goes.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Gate {
    /// One condition.
    Single(Condition),
    /// Open while at least one member is.
    AnyOf(Group),
}

impl From<Probe> for Gate {
    fn from(probe: Probe) -> Self {
        Self::Single(Condition::Probe(probe))
    }
}

impl Gate {
    /// Its `name`.
    #[must_use]
    pub fn name(&self) -> &str {
        match self {
            Self::Single(condition) => condition.name(),
            Self::AnyOf(group) => &group.name,
        }
    }

    /// Its conditions: one, or the members of the group.
    #[must_use]
    pub fn conditions(&self) -> &[Condition] {
        match self {
            Self::Single(condition) => std::slice::from_ref(condition),
            Self::AnyOf(group) => &group.any_of,
        }
    }
}

/// `anyOf`: a group that stands for a gate. Groups do not nest.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Group {
    /// Unique among the gates of its rule; an RFC 1123 label.
    pub name: String,
    /// At least one.
    pub any_of: Vec<Condition>,
}

/// A condition, by where its answer comes from.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Condition {
    /// The node is asked, time and again.
    Probe(Probe),
    /// The API server tells.
    Observation(Observation),
}

impl Condition {
    /// Its `name`.
    #[must_use]
    pub fn name(&self) -> &str {
        match self {
            Self::Probe(probe) => &probe.name,
            Self::Observation(observation) => &observation.name,
        }
    }
}

/// A check and when to run it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Probe {
    /// Unique among the gates of its rule and, in a group, among its members; an RFC 1123 label.
    pub name: String,
    /// What is asked.
    #[serde(flatten)]
    pub check: Check,
    /// How often, and how many answers make a state.
    #[serde(flatten)]
    pub schedule: Schedule,
}

/// What the API server must say. It tells of changes by itself, so there is no schedule.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Observation {
    /// As for a probe.
    pub name: String,
    /// What is looked at.
    #[serde(flatten)]
    pub object: Observed,
}

/// The timing fields of a core/v1 `Probe`, with fractions allowed and with defaults for a person who waits.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Schedule {
    /// Default 0.
    #[serde(
        rename = "initialDelaySeconds",
        serialize_with = "duration::serialize_seconds"
    )]
    pub initial_delay: Duration,
    /// Default 0.25 (core/v1: 10).
    #[serde(
        rename = "periodSeconds",
        serialize_with = "duration::serialize_seconds"
    )]
    pub period: Duration,
    /// Default 1.
    #[serde(
        rename = "timeoutSeconds",
        serialize_with = "duration::serialize_seconds"
    )]
    pub timeout: Duration,
    /// Default 1, at least 1.
    pub success_threshold: u32,
    /// Default 1 (core/v1: 3), at least 1.
    pub failure_threshold: u32,
}

impl Default for Schedule {
    fn default() -> Self {
        Self {
            initial_delay: Duration::ZERO,
            period: Duration::from_millis(250),
            timeout: Duration::from_secs(1),
            success_threshold: 1,
            failure_threshold: 1,
        }
    }
}
