//! What a rule may do beside the removal, as validated values.

use std::time::Duration;

use schemars::JsonSchema;
use serde::Serialize;

use super::duration::{self, DURATION};
use super::rule_options::OWNED_CONDITIONS;
use crate::syntax::Form;
use crate::syntax::QUALIFIED_NAME;

/// Keeps new pods away again when a gate has closed. Running pods are left alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(default)]
pub struct Retaint {
    /// For how long some gate must have been closed (not unknown) without a break; `30s` or more.
    #[serde(serialize_with = "duration::serialize")]
    #[schemars(with = "String", transform = Form(&DURATION))]
    pub after: Duration,
}

impl Default for Retaint {
    fn default() -> Self {
        Self { after: Self::LEAST }
    }
}

impl Retaint {
    /// The least `after`, and the default.
    pub const LEAST: Duration = Duration::from_secs(30);
}

/// A condition in the Node's status that says whether the rule is ready.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct PublishCondition {
    /// The condition's type, such as `readiness.k8s.io/NetworkReady`. Nobody else may write it.
    #[serde(rename = "type")]
    #[schemars(transform = Form(&QUALIFIED_NAME), extend("not" = {"enum": OWNED_CONDITIONS}))]
    pub kind: String,
}

/// What happens when a gate never opens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(default)]
pub struct Deadline {
    /// Counted from the first sight of the taint; `1s` or more.
    #[serde(serialize_with = "duration::serialize")]
    #[schemars(with = "String", transform = Form(&DURATION))]
    pub after: Duration,
    /// What is done then.
    pub action: DeadlineAction,
}

impl Deadline {
    /// The least `after`.
    pub const LEAST: Duration = Duration::from_secs(1);
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
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
pub enum DeadlineAction {
    /// Report it, and go on waiting: the node stays out of use.
    Keep,
    /// Report it, and remove the taint whatever the gates say: the node is used as it is.
    Remove,
}

impl DeadlineAction {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Keep, Self::Remove];

    /// As the file spells it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Keep => "Keep",
            Self::Remove => "Remove",
        }
    }
}
