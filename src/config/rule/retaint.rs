use std::time::Duration;

use schemars::JsonSchema;
use serde::Serialize;

use super::{Deadline, DeadlineAction};
use crate::config::duration::{self, DURATION};
use crate::config::read::Cursor;
use crate::syntax::{Form, QUALIFIED_NAME};
use crate::taint::{Effect, TaintMatcher, parse_key, refuse_owned, startup_name};

/// Keeps new pods away again when a gate has closed. Running pods stay.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(default)]
pub struct Retaint {
    /// How long at least one gate must be closed (not unknown), without interruption; `30s` or more.
    #[serde(serialize_with = "duration::serialize")]
    #[schemars(with = "String", transform = Form(&DURATION))]
    pub after: Duration,
    /// The key of the taint that is put back, if it is not the key of the rule's `taint`. The rule then removes both
    /// taints.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String", transform = Form(&QUALIFIED_NAME), transform = refuse_owned)]
    pub key: Option<String>,
}

impl Default for Retaint {
    fn default() -> Self {
        Self {
            after: Self::LEAST,
            key: None,
        }
    }
}

impl Retaint {
    const LEAST: Duration = Duration::from_secs(30);

    pub(super) fn read(cursor: &Cursor<'_>) -> Option<Self> {
        cursor.mapping("retaint", |fields| {
            let after = fields.or("after", Self::LEAST, |after| {
                let reason = "otherwise each restart of a component would put the taint back";
                after.duration_from(Self::LEAST, reason)
            });
            let key = fields.optional("key", |key| key.parsed(parse_key));
            Some(Self { after, key })
        })
    }

    /// The taint that is put back by a rule for `taint`.
    pub fn taint(&self, taint: &TaintMatcher) -> TaintMatcher {
        match self.key.clone().filter(|key| *key != taint.key) {
            Some(key) => TaintMatcher {
                key,
                value: None,
                effect: Some(Effect::NoSchedule),
            },
            None => taint.clone(),
        }
    }
}

/// Warns about a `retaint`, which stands `at`, if the taint that it puts back has a `key` that disturbs Cluster Autoscaler.
pub(super) fn warn(at: &Cursor<'_>, key: &str) {
    if let Some(name) = startup_name(key) {
        at.warn_key(format!(
            "puts back a taint with the key {key}: Cluster Autoscaler counts a node with such a taint as unready, and stops scaling \
             if too many nodes are unready; set key to another key, such as status-taint.cluster-autoscaler.kubernetes.io/{name}"
        ));
    }
}

/// Reports what in the rest of the rule does not allow a `retaint`, which stands `at`.
pub(super) fn check_needs(
    at: &Cursor<'_>,
    taint: Option<&TaintMatcher>,
    has_gates: bool,
    deadline: Deadline,
) {
    if taint.is_some_and(|taint| taint.effect != Some(Effect::NoSchedule)) {
        at.report_key(
            "needs taint.effect: NoSchedule, because untaint must know which effect to put back, and must not evict pods",
        );
    }
    if !has_gates {
        at.report_key("needs a gate: without one, nothing can close");
    }
    if deadline.action == DeadlineAction::Remove {
        at.report_key(
            "cannot be used with deadline.action: Remove, which lets pods start although a gate is closed; delete one of the two",
        );
    }
}

/// [`check_needs`] for the schema: what a rule with a `retaint` must have.
pub(super) fn needs() -> serde_json::Value {
    serde_json::json!({
        "properties": {
            "taint": {
                "properties": {"effect": {"const": Effect::NoSchedule}},
                "required": ["effect"],
            },
            "gates": {"minItems": 1},
            "deadline": {"properties": {"action": {"const": DeadlineAction::Keep}}},
        },
    })
}
