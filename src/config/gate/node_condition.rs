use std::ops::Not;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Serialize, Serializer};

use super::ObservedObject;
use crate::config::duration::{DURATION, serialize};
use crate::config::read::Cursor;
use crate::syntax::{Form, QUALIFIED_NAME};

/// `ConditionStatus` of core/v1.
const STATUSES: [&str; 3] = ["True", FALSE, "Unknown"];
/// The status of a condition that tells of a problem, while there is none.
const FALSE: &str = "False";

/// A condition of the Node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("dependentSchemas" = {"missing": missing_needs()}))]
pub struct NodeCondition {
    /// The condition's type, such as `Ready`.
    #[serde(rename = "type")]
    #[schemars(transform = Form(&QUALIFIED_NAME))]
    pub kind: String,
    /// The status that the condition must have. Write it in quotes.
    #[schemars(default = "default_status", extend("enum" = STATUSES))]
    pub status: String,
    /// The status that the condition counts as while the Node does not have it. If left out, the gate is closed then. Needs
    /// `status: "False"`.
    #[serde(
        rename = "missing",
        skip_serializing_if = "Not::not",
        serialize_with = "as_false"
    )]
    #[schemars(default, with = "String", extend("const" = FALSE))]
    pub missing_is_false: bool,
    /// The longest time that may have passed since `lastHeartbeatTime`; `1m` or more. Use it only for conditions that a
    /// component writes periodically.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "serialize")]
    #[schemars(default, with = "String", transform = Form(&DURATION))]
    pub max_age: Option<Duration>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it so")]
fn as_false<S: Serializer>(_: &bool, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(FALSE)
}

fn default_status() -> String {
    STATUSES[0].into()
}

pub(super) fn read(cursor: &Cursor<'_>) -> Option<ObservedObject> {
    const LEAST_AGE: Duration = Duration::from_mins(1);
    let statuses = STATUSES.map(|status| (status, status));
    cursor.mapping("nodeCondition", |fields| {
        let kind = fields.required("type", |kind| kind.text(&QUALIFIED_NAME));
        let status = match fields.find("status") {
            Some(status) => status.word(&statuses),
            None => Some(STATUSES[0]),
        };
        let missing_is_false = fields.optional("missing", |missing| {
            let counts_as = missing.word(&[(FALSE, FALSE)])?;
            if status.is_some_and(|status| status != counts_as) {
                missing.report_key(
                    "needs status: \"False\": a condition with another status is missing until the component that writes it has \
                     started, so the gate would be open too early",
                );
            }
            Some(())
        });
        Some(ObservedObject::NodeCondition(NodeCondition {
            kind,
            status: status.unwrap_or_default().to_owned(),
            missing_is_false: missing_is_false.is_some(),
            max_age: fields.or("maxAge", None, |max_age| {
                let reason = "clocks that differ by seconds must not make a heartbeat too old";
                max_age.duration_from(LEAST_AGE, reason).map(Some)
            }),
        }))
    })
}

/// What `missing` needs of the other fields, for the schema.
fn missing_needs() -> serde_json::Value {
    serde_json::json!({"properties": {"status": {"const": FALSE}}, "required": ["status"]})
}

/// Warns about a field `missing` of a rule without `stableFor`, if the `check` is of this kind.
pub(super) fn warn_if_unstable(check: &Cursor<'_>) {
    if let Some(missing) = check.get("nodeCondition").and_then(|at| at.get("missing")) {
        missing.warn_key(
            "opens the gate before the component that writes the condition has started, because the condition is missing until \
             then; set stableFor in the rule to a longer time than the component needs",
        );
    }
}
