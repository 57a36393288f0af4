//! The shape of the file as validated values: rules, gates and when they run.
//!
//! Durations in fields that end in `Seconds` are seconds, as in core/v1 `Probe`.

use std::collections::BTreeMap;
use std::time::Duration;

use schemars::JsonSchema;
use serde::Serialize;

use super::checks::ProbeHandler;
use super::duration::{self, DURATION};
use super::gates::{MAX_SECONDS, MAX_THRESHOLD, MIN_SECONDS};
use super::observed::ObservedObject;
use super::options::{Deadline, PublishCondition, Retaint};
use super::rule_options::retaint_needs;
use crate::syntax::DNS_LABEL;
use crate::syntax::{Form, labels};
use crate::taint::TaintMatcher;

/// A whole configuration file.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Configuration {
    /// Tell of what happens by Events on the Node too. Needs a permission of its own.
    #[schemars(default)]
    pub events: bool,
    /// At least one. Rules do not depend on each other.
    #[schemars(length(min = 1))]
    pub rules: Vec<Rule>,
}

/// One taint to remove and the gates that must be open first.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("dependentSchemas" = {"retaint": retaint_needs()}))]
pub struct Rule {
    /// Unique in the file.
    #[schemars(transform = Form(&DNS_LABEL))]
    pub name: String,
    /// What to remove.
    pub taint: TaintMatcher,
    /// The rule applies only to a Node that has all of these labels, as in a PodSpec.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(default, transform = labels)]
    pub node_selector: BTreeMap<String, String>,
    /// All must be open. `[]` is legal: the rule is ready at once.
    pub gates: Vec<Gate>,
    /// How long every gate must have been open without a break.
    #[serde(serialize_with = "duration::serialize")]
    #[schemars(default, with = "String", transform = Form(&DURATION))]
    pub stable_for: Duration,
    /// What happens when a gate never opens.
    #[schemars(default)]
    pub deadline: Deadline,
    /// Put the taint back when a gate has closed.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(default, with = "Retaint")]
    pub retaint: Option<Retaint>,
    /// Tell the state of the gates by a condition of the Node too.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(default, with = "PublishCondition")]
    pub publish_condition: Option<PublishCondition>,
    /// Decide and report, write nothing.
    #[schemars(default)]
    pub dry_run: bool,
}

impl Rule {
    /// A rule with the defaults of all other fields.
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
    pub fn is_same(&self, other: &Self) -> bool {
        self.name == other.name
            && self.taint == other.taint
            && self.node_selector == other.node_selector
    }
}

/// What must be so before the taint goes: a condition, or one of a group.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum Gate {
    /// One condition.
    Single(#[schemars(schema_with = "Check::json_schema")] Check),
    /// Open while at least one member is.
    AnyOf(Group),
}

impl From<Probe> for Gate {
    fn from(probe: Probe) -> Self {
        Self::Single(Check::Probe(probe))
    }
}

impl Gate {
    /// Its `name`.
    pub fn name(&self) -> &str {
        match self {
            Self::Single(condition) => condition.name(),
            Self::AnyOf(group) => &group.name,
        }
    }

    /// Its conditions: one, or the members of the group.
    pub fn checks(&self) -> &[Check] {
        match self {
            Self::Single(condition) => std::slice::from_ref(condition),
            Self::AnyOf(group) => &group.any_of,
        }
    }
}

/// A group that stands for a gate.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
pub struct Group {
    /// Unique among the gates of its rule.
    #[schemars(transform = Form(&DNS_LABEL))]
    pub name: String,
    /// A group, open while at least one member is. Groups do not nest.
    #[schemars(length(min = 1))]
    pub any_of: Vec<Check>,
}

/// A condition: a check of the node, or what the API server says.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum Check {
    /// The node is asked, time and again.
    Probe(Probe),
    /// The API server tells.
    Observation(Observation),
}

impl Check {
    /// Its `name`.
    pub fn name(&self) -> &str {
        match self {
            Self::Probe(probe) => &probe.name,
            Self::Observation(observation) => &observation.name,
        }
    }
}

/// A check and when to run it.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[schemars(inline)]
pub struct Probe {
    /// Unique among the gates of its rule and, in a group, among its members.
    #[schemars(transform = Form(&DNS_LABEL))]
    pub name: String,
    /// What is asked.
    #[serde(flatten)]
    pub handler: ProbeHandler,
    /// How often, and how many answers make a state.
    #[serde(flatten)]
    pub schedule: Schedule,
}

/// What the API server must say. It tells of changes by itself, so there is no schedule.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[schemars(inline)]
pub struct Observation {
    /// As for a probe.
    #[schemars(transform = Form(&DNS_LABEL))]
    pub name: String,
    /// What is looked at.
    #[serde(flatten)]
    pub object: ObservedObject,
}

/// The timing fields of a core/v1 `Probe`, with fractions allowed and with defaults for a person who waits.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(default)]
pub struct Schedule {
    /// Before the first look.
    #[serde(
        rename = "initialDelaySeconds",
        serialize_with = "duration::serialize_seconds"
    )]
    #[schemars(with = "f64", range(min = 0, max = MAX_SECONDS))]
    pub initial_delay: Duration,
    /// Between two looks (Kubernetes: 10).
    #[serde(
        rename = "periodSeconds",
        serialize_with = "duration::serialize_seconds"
    )]
    #[schemars(with = "f64", range(min = MIN_SECONDS, max = MAX_SECONDS))]
    pub period: Duration,
    /// A look that takes longer counts as closed.
    #[serde(
        rename = "timeoutSeconds",
        serialize_with = "duration::serialize_seconds"
    )]
    #[schemars(with = "f64", range(min = MIN_SECONDS, max = MAX_SECONDS))]
    pub timeout: Duration,
    /// So many successes in a row open the gate.
    #[schemars(range(min = 1, max = MAX_THRESHOLD))]
    pub success_threshold: u32,
    /// So many failures in a row close it (Kubernetes: 3).
    #[schemars(range(min = 1, max = MAX_THRESHOLD))]
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
