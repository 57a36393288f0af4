use std::time::Duration;

use schemars::JsonSchema;
use serde::Serialize;

use super::{Deadline, DeadlineAction};
use crate::config::duration::{self, DURATION};
use crate::config::read::Cursor;
use crate::syntax::Form;
use crate::taint::{Effect, TaintMatcher};

/// Keeps new pods away again when a gate has closed. Running pods stay.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(default)]
pub struct Retaint {
    /// How long at least one gate must be closed (not unknown), without interruption; `30s` or more.
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
    const LEAST: Duration = Duration::from_secs(30);

    pub(super) fn read(cursor: &Cursor<'_>) -> Option<Self> {
        cursor.mapping("retaint", |fields| {
            let after = fields.or("after", Self::LEAST, |after| {
                let reason = "otherwise each restart of a component would put the taint back";
                after.duration_from(Self::LEAST, reason)
            });
            Some(Self { after })
        })
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
