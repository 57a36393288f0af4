use std::time::Duration;

use schemars::JsonSchema;
use serde::Serialize;

use super::ObservedObject;
use crate::config::duration::{DURATION, serialize};
use crate::config::read::Cursor;
use crate::syntax::{Form, QUALIFIED_NAME};

/// `ConditionStatus` of core/v1.
const STATUSES: [&str; 3] = ["True", "False", "Unknown"];

/// A condition of the Node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NodeCondition {
    /// The condition's type, such as `Ready`.
    #[serde(rename = "type")]
    #[schemars(transform = Form(&QUALIFIED_NAME))]
    pub kind: String,
    /// The status that the condition must have. Write it in quotes.
    #[schemars(default = "default_status", extend("enum" = STATUSES))]
    pub status: String,
    /// The longest time that may have passed since `lastHeartbeatTime`; `1m` or more. Use it only for conditions that a
    /// component writes periodically.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "serialize")]
    #[schemars(default, with = "String", transform = Form(&DURATION))]
    pub max_age: Option<Duration>,
}

fn default_status() -> String {
    "True".into()
}

pub(super) fn read(cursor: &Cursor<'_>) -> Option<ObservedObject> {
    const LEAST_AGE: Duration = Duration::from_mins(1);
    let statuses = STATUSES.map(|status| (status, status));
    cursor.mapping("nodeCondition", |fields| {
        Some(ObservedObject::NodeCondition(NodeCondition {
            kind: fields.required("type", |kind| kind.text(&QUALIFIED_NAME)),
            status: fields.or("status", default_status(), |status| {
                status.word(&statuses).map(str::to_owned)
            }),
            max_age: fields.or("maxAge", None, |max_age| {
                let reason = "clocks that differ by seconds must not make a heartbeat too old";
                max_age.duration_from(LEAST_AGE, reason).map(Some)
            }),
        }))
    })
}
