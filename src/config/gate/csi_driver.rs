use schemars::JsonSchema;
use serde::Serialize;

use super::ObservedObject;
use crate::config::read::Cursor;
use crate::syntax::{CSI_DRIVER_NAME, Form};

/// A CSI driver. The race it closes is kubernetes#95911.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CsiDriver {
    /// The name of the driver, as in `spec.drivers[].name` of the CSINode, such as `ebs.csi.aws.com`.
    #[schemars(transform = Form(&CSI_DRIVER_NAME))]
    pub name: String,
    /// The CSINode must also have an `allocatable.count` for the driver, and it must not be zero.
    #[schemars(default)]
    pub allocatable: bool,
}

pub(super) fn read(cursor: &Cursor<'_>) -> Option<ObservedObject> {
    cursor.mapping("csiDriver", |fields| {
        Some(ObservedObject::CsiDriver(CsiDriver {
            name: fields.required("name", |name| name.text(&CSI_DRIVER_NAME)),
            allocatable: fields.flag("allocatable"),
        }))
    })
}
