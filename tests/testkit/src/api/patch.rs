//! JSON Patch (RFC 6902), with the errors of the API server.

use json_patch::jsonptr::Pointer;
use json_patch::{AddOperation, Patch, PatchOperation};
use serde_json::Value;

use super::object::Id;
use super::status::Status;

/// Changes `object`. After an error, `object` can be half changed.
pub(super) fn apply(id: &Id, object: &mut Value, body: &[u8]) -> Result<(), Status> {
    let old = object["metadata"].clone();
    for operation in parse(body)? {
        if let Some(operation) = leniently(operation, object) {
            json_patch::patch(object, &[operation]).map_err(|_| Status::patch_failed())?;
        }
    }
    let new = &object["metadata"];
    // If the patch sets a version, it must be the current version.
    if new["resourceVersion"] != old["resourceVersion"] {
        return Err(Status::conflict(id));
    }
    if new["uid"] != old["uid"] {
        return Err(Status::immutable(id, "metadata.uid", &new["uid"]));
    }
    Ok(())
}

/// A patch that is not a list of objects is malformed (400). An invalid operation in the list fails (422).
fn parse(body: &[u8]) -> Result<Vec<PatchOperation>, Status> {
    let value: Value =
        serde_json::from_slice(body).map_err(|_| Status::bad_request("invalid JSON patch"))?;
    if !value
        .as_array()
        .is_some_and(|list| list.iter().all(Value::is_object))
    {
        return Err(Status::bad_request(
            "error decoding patch: not a list of operations",
        ));
    }
    let patch: Patch = serde_json::from_value(value).map_err(|_| Status::patch_failed())?;
    Ok(patch.0)
}

/// The operation as the library of the API server (evanphx/json-patch v4) executes it. For the library, a missing
/// member has the value `null`: a test for `null` succeeds, and a replacement adds it. `None` if there is nothing to
/// do.
fn leniently(operation: PatchOperation, object: &Value) -> Option<PatchOperation> {
    match operation {
        PatchOperation::Test(test) if test.value.is_null() && lacks(object, &test.path) => None,
        PatchOperation::Replace(replace) if lacks(object, &replace.path) => {
            let (path, value) = (replace.path, replace.value);
            Some(PatchOperation::Add(AddOperation { path, value }))
        }
        other => Some(other),
    }
}

/// Whether the member at `path` is missing.
fn lacks(object: &Value, path: &Pointer) -> bool {
    path.resolve(object).is_err()
        && path
            .parent()
            .and_then(|parent| parent.resolve(object).ok())
            .is_some_and(Value::is_object)
}
