use schemars::JsonSchema;
use serde::Serialize;

use crate::config::read::Cursor;
use crate::syntax::{Form, QUALIFIED_NAME};

/// The conditions that the kubelet and the controllers of routes write and rely on.
const OWNED: [&str; 5] = [
    "Ready",
    "MemoryPressure",
    "DiskPressure",
    "PIDPressure",
    "NetworkUnavailable",
];

/// A condition in the Node's status that says whether the rule is ready.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct PublishCondition {
    /// The condition's type, such as `readiness.k8s.io/NetworkReady`. No other program may write this
    /// condition.
    #[serde(rename = "type")]
    #[schemars(transform = Form(&QUALIFIED_NAME), extend("not" = {"enum": OWNED}))]
    pub kind: String,
}

impl PublishCondition {
    pub(super) fn read(cursor: &Cursor<'_>) -> Option<Self> {
        cursor.mapping("publishCondition", |fields| {
            let kind = fields.required("type", |field| {
                let kind = field.text(&QUALIFIED_NAME)?;
                if OWNED.contains(&kind.as_str()) {
                    field.report(format!(
                        "must not be {kind}, which Kubernetes itself writes; use a name of your own, such as readiness.k8s.io/NetworkReady"
                    ));
                    return None;
                }
                Some(kind)
            });
            Some(Self { kind })
        })
    }
}
