use schemars::JsonSchema;
use serde::Serialize;

use super::ObservedObject;
use crate::config::read::Cursor;
use crate::syntax::{Form, QUALIFIED_NAME};

/// A resource of the Node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Allocatable {
    /// A resource such as `nvidia.com/gpu`, which must be there and above zero.
    #[schemars(transform = Form(&QUALIFIED_NAME))]
    pub resource: String,
}

pub(super) fn read(cursor: &Cursor<'_>) -> Option<ObservedObject> {
    cursor.mapping("allocatable", |fields| {
        Some(ObservedObject::Allocatable(Allocatable {
            resource: fields.required("resource", |name| name.text(&QUALIFIED_NAME)),
        }))
    })
}
