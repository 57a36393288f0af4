//! JSON Patch (RFC 6902), with the API server's verdicts.

use json_patch::{Patch, PatchOperation};
use serde_json::Value;

use super::status::Status;

/// Changes `node`, or leaves it in pieces and says why.
pub(super) fn apply(name: &str, node: &mut Value, body: &[u8]) -> Result<(), Status> {
    let old = node["metadata"].clone();
    for operation in parse(body)? {
        if is_test_of_absence(&operation, node) {
            continue;
        }
        json_patch::patch(node, &[operation]).map_err(|_| Status::patch_failed())?;
    }
    let new = &node["metadata"];
    // The version that a patch leaves in the object is the one it expects.
    if new["resourceVersion"] != old["resourceVersion"] {
        return Err(Status::conflict(name));
    }
    if new["uid"] != old["uid"] {
        return Err(Status::immutable(name, "metadata.uid", &new["uid"]));
    }
    Ok(())
}

/// What is no list of objects is malformed (400); a bad operation in it is one that fails (422).
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

/// To the API server's library a member that is not there equals `null`; to RFC 6902, and `json_patch`, it does not.
fn is_test_of_absence(operation: &PatchOperation, node: &Value) -> bool {
    let PatchOperation::Test(test) = operation else {
        return false;
    };
    test.value.is_null()
        && test.path.resolve(node).is_err()
        && test
            .path
            .parent()
            .and_then(|parent| parent.resolve(node).ok())
            .is_some_and(Value::is_object)
}
