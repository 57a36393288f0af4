//! From the tree to what a rule does beside the removal.

use std::time::Duration;

use super::cursor::Cursor;
use super::duration;
use super::options::{Deadline, DeadlineAction, PublishCondition, Retaint};
use super::types::Gate;
use crate::syntax::{QUALIFIED_NAME, shown};
use crate::taint::{Effect, TaintMatcher};

/// The conditions that the kubelet, and what sets up routes, write and rely on.
pub(super) const OWNED_CONDITIONS: [&str; 5] = [
    "Ready",
    "MemoryPressure",
    "DiskPressure",
    "PIDPressure",
    "NetworkUnavailable",
];

pub(super) fn deadline(cursor: &Cursor<'_>) -> Option<Deadline> {
    cursor.mapping("deadline", |fields| {
        let after = fields.optional("after").map(|field| {
            let reason = "what is to be late must be given some time";
            duration_from(&field, Deadline::LEAST, reason)
        });
        let action = fields
            .optional("action")
            .map(|field| field.parsed(parse_action));
        let default = Deadline::default();
        Some(Deadline {
            after: after.unwrap_or(Some(default.after))?,
            action: action.unwrap_or(Some(default.action))?,
        })
    })
}

/// A duration that is not shorter than `least`, for this `reason`.
pub(super) fn duration_from(
    cursor: &Cursor<'_>,
    least: Duration,
    reason: &str,
) -> Option<Duration> {
    let duration = cursor.duration()?;
    if duration < least {
        let least = duration::shown(least);
        cursor.report(format!("must be {least} or more: {reason}"));
        return None;
    }
    Some(duration)
}

fn parse_action(name: &str) -> Result<DeadlineAction, String> {
    let mut actions = DeadlineAction::ALL.into_iter();
    let found = actions.find(|action| action.as_str() == name);
    found.ok_or_else(|| format!("must be Keep or Remove, not {}", shown(name)))
}

pub(super) fn retaint(cursor: &Cursor<'_>) -> Option<Retaint> {
    cursor.mapping("retaint", |fields| {
        let Some(field) = fields.optional("after") else {
            return Some(Retaint::default());
        };
        let reason = "a component that restarts must not close the node at once";
        let after = duration_from(&field, Retaint::LEAST, reason)?;
        Some(Retaint { after })
    })
}

/// Whether the rest of the rule allows a `retaint`, which stands `at`. What could not be read is `None`.
pub(super) fn check_retaint(
    at: &Cursor<'_>,
    taint: Option<&TaintMatcher>,
    gates: Option<&[Gate]>,
    deadline: Deadline,
) {
    if taint.is_some_and(|taint| taint.effect != Some(Effect::NoSchedule)) {
        at.report_key(
            "needs taint.effect: NoSchedule, so that there is one taint to put back, and one that evicts no pod",
        );
    }
    if gates.is_some_and(<[_]>::is_empty) {
        at.report_key("needs a gate: without any, nothing can close");
    }
    if deadline.action == DeadlineAction::Remove {
        at.report_key(
            "contradicts deadline.action: Remove, which has a node used although a gate is closed; leave out one of them",
        );
    }
}

/// The same for the schema, beside a `retaint`.
pub(super) fn retaint_needs() -> serde_json::Value {
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

pub(super) fn publish_condition(cursor: &Cursor<'_>) -> Option<PublishCondition> {
    cursor.mapping("publishCondition", |fields| {
        let field = fields.required("type")?;
        let kind = field.text(&QUALIFIED_NAME)?;
        if OWNED_CONDITIONS.contains(&kind.as_str()) {
            field.report(format!(
                "must not be {kind}, which Kubernetes itself writes; take a name of your own, such as readiness.k8s.io/NetworkReady"
            ));
            return None;
        }
        Some(PublishCondition { kind })
    })
}
