use schemars::JsonSchema;
use serde::Serialize;

use super::ObservedObject;
use crate::config::read::Cursor;
use crate::syntax::{Form, LABEL_VALUE, QUALIFIED_NAME};

/// A label of the Node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct NodeLabel {
    /// The key of the label.
    #[schemars(transform = Form(&QUALIFIED_NAME))]
    pub key: String,
    /// The value of the label; any value if left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(default, with = "String", transform = Form(&LABEL_VALUE))]
    pub value: Option<String>,
}

pub(super) fn read(cursor: &Cursor<'_>) -> Option<ObservedObject> {
    cursor.mapping("nodeLabel", |fields| {
        Some(ObservedObject::NodeLabel(NodeLabel {
            key: fields.required("key", |key| key.text(&QUALIFIED_NAME)),
            value: fields.optional("value", |value| value.text(&LABEL_VALUE)),
        }))
    })
}
