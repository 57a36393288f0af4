use schemars::transform::Transform;
use schemars::{JsonSchema, Schema};
use serde::Serialize;

use super::ObservedObject;
use crate::config::read::{Cursor, Value};
use crate::quantity;
use crate::syntax::{Form, QUALIFIED_NAME};

/// Whether the kubelet itself reports this resource from its start on, less what it reserves (`MachineInfo` in
/// k8s.io/kubernetes/pkg/kubelet/nodestatus).
fn is_of_kubelet(resource: &str) -> bool {
    ["cpu", "memory", "ephemeral-storage", "pods"].contains(&resource)
        || resource.starts_with("hugepages-")
}

/// A resource of the Node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Allocatable {
    /// A resource such as `nvidia.com/gpu`, which must be there and above zero.
    #[schemars(transform = Form(&QUALIFIED_NAME))]
    pub resource: String,
    /// The least quantity in `status.allocatable` that opens the gate.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(default, with = "String", transform = quantity_above_zero)]
    pub at_least: Option<String>,
    /// The quantity must also be the one in `status.capacity`.
    #[schemars(default)]
    pub equals_capacity: bool,
}

pub(super) fn read(cursor: &Cursor<'_>) -> Option<ObservedObject> {
    cursor.mapping("allocatable", |fields| {
        let resource = fields.required("resource", |name| name.text(&QUALIFIED_NAME));
        let at_least = fields.optional("atLeast", read_quantity);
        let capacity_at = fields.find("equalsCapacity");
        let equals_capacity = capacity_at.as_ref().and_then(Cursor::boolean);
        if let Some(at) = &capacity_at
            && equals_capacity == Some(true)
            && is_of_kubelet(&resource)
        {
            let remedy = match &at_least {
                Some(_) => "delete this field",
                None => "write atLeast instead",
            };
            at.warn_key(format!(
                "the kubelet reports {resource} from its start, less what it reserves, so the gate opens at once or never; \
                 {remedy}"
            ));
        }
        Some(ObservedObject::Allocatable(Allocatable {
            resource,
            at_least,
            equals_capacity: equals_capacity.unwrap_or_default(),
        }))
    })
}

/// Warns about `equalsCapacity: true` without `atLeast` of a rule without `stableFor`, if the `check` is of this kind.
pub(super) fn warn_if_unstable(check: &Cursor<'_>) {
    if let Some(at) = check.get("allocatable")
        && let Some(capacity) = at.get("equalsCapacity")
        && matches!(capacity.value(), Value::Bool(true))
        && at.get("atLeast").is_none()
        && let Some(resource) = at.get("resource")
        && !matches!(resource.value(), Value::String(name) if is_of_kubelet(name))
    {
        capacity.warn_key(
            "opens the gate with the first device, if the device plugin lists one after the other; add atLeast, or set \
             stableFor in the rule",
        );
    }
}

/// As everywhere in Kubernetes, a quantity may be written as a number.
fn read_quantity(cursor: &Cursor<'_>) -> Option<String> {
    let text = match cursor.value() {
        Value::String(text) => Some(text.as_str()),
        Value::Number(_) => cursor.spelling(),
        _ => None,
    };
    match text.filter(|text| (quantity::SOME.holds)(text)) {
        Some(text) => Some(text.to_owned()),
        None => cursor.mismatch(quantity::SOME.expected),
    }
}

fn quantity_above_zero(schema: &mut Schema) {
    Form(&quantity::SOME).transform(schema);
    schema.insert("type".into(), ["number", "string"].as_slice().into());
    schema.insert("exclusiveMinimum".into(), 0.into());
}
