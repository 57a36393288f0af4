//! Changes through nodes/status.

use serde_json::{Value, json};

use super::{Change, METADATA};

const STATUS: &str = "status";
pub(crate) const NOT_STATUS: &str = "may change nothing in the Node's status except the conditions that a rule for this Node publishes";
const NOT_METADATA: &str = "anything else in its metadata";

/// What is not the agent's to change of a Node of [`crate::installation::rich_node`], where rules publish.
pub(crate) fn of_status(node: &Value) -> Vec<Change> {
    [conditions(node), others(node), metadata(node)].concat()
}

fn with_condition(node: &Value, kind: &str) -> Vec<Value> {
    let mut conditions = node["status"]["conditions"].as_array().unwrap().clone();
    conditions.push(json!({"type": kind, "status": "True"}));
    conditions
}

fn conditions(node: &Value) -> Vec<Change> {
    let mut changed = node["status"]["conditions"].clone();
    changed[0]["status"] = json!("False");
    [
        ("a foreign condition changed", changed),
        (
            "a foreign condition added",
            json!(with_condition(node, "Thief")),
        ),
        (
            "the condition of a rule for other nodes added",
            json!(with_condition(node, "example.com/GpuReady")),
        ),
    ]
    .into_iter()
    .map(|(name, conditions)| Change::of(name, [STATUS, "conditions"], conditions, NOT_STATUS))
    .collect()
}

fn others(node: &Value) -> Vec<Change> {
    let mut info = node["status"]["nodeInfo"].clone();
    info["kernelVersion"] = json!("0");
    [
        ("capacity", json!({"cpu": "64"})),
        ("allocatable", json!({"cpu": "64"})),
        (
            "addresses",
            json!([{"type": "InternalIP", "address": "192.0.2.1"}]),
        ),
        ("daemonEndpoints", json!({"kubeletEndpoint": {"Port": 1}})),
        ("nodeInfo", info),
        ("images", json!([{"names": ["x"], "sizeBytes": 1}])),
        ("volumesAttached", json!([{"name": "x", "devicePath": "y"}])),
    ]
    .into_iter()
    .map(|(field, value)| Change::of(field, [STATUS, field], value, NOT_STATUS))
    .collect()
}

fn metadata(node: &Value) -> Vec<Change> {
    let mut labels = node["metadata"]["labels"].clone();
    labels["team"] = json!("b");
    let owner = json!([{"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "u"}]);
    let own = json!(with_condition(node, "example.com/StorageReady"));
    let with_own = Change::of(
        "the own condition",
        [STATUS, "conditions"],
        own,
        NOT_METADATA,
    );
    let changes = [
        ("labels", labels.clone()),
        ("annotations", json!({"example.com/note": "b"})),
        (
            "finalizers",
            json!(["example.com/held", "example.com/for-ever"]),
        ),
        ("ownerReferences", owner),
    ];
    let changes = changes.into_iter();
    let changes =
        changes.map(|(field, value)| Change::of(field, [METADATA, field], value, NOT_METADATA));
    changes
        .chain([with_own.and([METADATA, "labels"], labels)])
        .collect()
}
