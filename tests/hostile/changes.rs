//! Changes of a Node, and every kind of request that could make them.

use http::Method;
use serde_json::{Value, json};

use crate::request::{APPLY, By, JSON_PATCH, MERGE, Request, STRATEGIC};

/// A change of some fields of a Node.
#[derive(Clone)]
pub(crate) struct Change {
    pub(crate) name: &'static str,
    /// The section, the field and its new value.
    pub(crate) fields: Vec<(&'static str, &'static str, Value)>,
    /// In the policy's message.
    pub(crate) message: &'static str,
    /// If the roles do not.
    pub(crate) refused_by: By,
}

impl Change {
    pub(crate) fn of(
        name: &'static str,
        [section, field]: [&'static str; 2],
        value: Value,
        message: &'static str,
    ) -> Self {
        Self {
            name,
            fields: vec![(section, field, value)],
            message,
            refused_by: By::Policy,
        }
    }

    pub(crate) fn and(mut self, [section, field]: [&'static str; 2], value: Value) -> Self {
        self.fields.push((section, field, value));
        self
    }

    /// The server takes it of nobody.
    fn of_nobody(mut self) -> Self {
        self.refused_by = By::Server;
        self
    }

    /// By all types of patches and by PUT.
    pub(crate) fn requests(&self, node: &Value, subresource: &str) -> Vec<Request> {
        let name = node["metadata"]["name"].as_str().unwrap();
        let uri = format!("/api/v1/nodes/{name}{subresource}");
        let title = |how: &str| format!("{name}{subresource}: {}, {how}", self.name);
        let mut partial = json!({});
        let mut whole = node.clone();
        let mut operations = Vec::new();
        for (section, field, value) in &self.fields {
            partial[section][field] = value.clone();
            whole[section][field] = value.clone();
            let path = format!("/{section}/{field}");
            operations.push(json!({"op": "add", "path": path, "value": value}));
        }
        let mut applied = partial.clone();
        applied["apiVersion"] = json!("v1");
        applied["kind"] = json!("Node");
        applied["metadata"]["name"] = json!(name);
        let by_apply = format!("{uri}?fieldManager=thief");
        let by_force = format!("{by_apply}&force=true");
        vec![
            Request::patch(title("JSON patch"), &uri, JSON_PATCH, json!(operations)),
            Request::patch(title("merge patch"), &uri, MERGE, partial.clone()),
            Request::patch(title("strategic merge patch"), &uri, STRATEGIC, partial),
            Request::patch(title("apply"), by_apply, APPLY, applied.clone()),
            Request::patch(title("apply with force"), by_force, APPLY, applied),
            Request::new(title("PUT"), Method::PUT, uri, whole),
        ]
    }
}

const METADATA: &str = "metadata";
const SPEC: &str = "spec";
const TAINTS: &str = "all others must stay as they are";

/// What is not the agent's to change, of a Node of [`crate::installation::rich_node`], through the Node itself.
pub(crate) fn of_nodes(node: &Value) -> Vec<Change> {
    let not_metadata =
        "may not change the Node's labels, annotations or anything else of its metadata";
    let not_spec = "may change nothing of the Node's spec but taints";
    let mut labels = node["metadata"]["labels"].clone();
    labels["team"] = json!("b");
    let owner = json!([{"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "u"}]);
    let mut changes = vec![
        Change::of(
            "a label changed",
            [METADATA, "labels"],
            labels,
            not_metadata,
        ),
        Change::of(
            "an annotation added",
            [METADATA, "annotations"],
            json!({"example.com/note": "a", "x": "y"}),
            not_metadata,
        ),
        Change::of(
            "a finalizer added",
            [METADATA, "finalizers"],
            json!(["example.com/held", "example.com/for-ever"]),
            not_metadata,
        ),
        Change::of(
            "an owner added",
            [METADATA, "ownerReferences"],
            owner,
            not_metadata,
        ),
        Change::of(
            "unschedulable",
            [SPEC, "unschedulable"],
            json!(true),
            not_spec,
        ),
        Change::of("podCIDR", [SPEC, "podCIDR"], json!("10.1.0.0/24"), not_spec)
            .and([SPEC, "podCIDRs"], json!(["10.1.0.0/24"])),
        Change::of(
            "providerID",
            [SPEC, "providerID"],
            json!("cloud://thief"),
            not_spec,
        ),
        Change::of("externalID", [SPEC, "externalID"], json!("thief"), "").of_nobody(),
    ];
    changes.extend(of_taints(node));
    changes
}

/// What is not the agent's to change of taints.
pub(crate) fn of_taints(node: &Value) -> Vec<Change> {
    let taints = node["spec"]["taints"].as_array().unwrap();
    let without = |keys: &[&str]| -> Vec<Value> {
        let mut taints = taints.clone();
        taints.retain(|taint| !keys.contains(&taint["key"].as_str().unwrap()));
        taints
    };
    let with = |taint: Value| [taints.as_slice(), &[taint]].concat();
    let changed = |index: usize, field: &str, value: Value| {
        let mut taints = taints.clone();
        taints[index][field] = value;
        taints
    };
    let mut swapped = taints.clone();
    swapped.swap(0, 1);
    let mut own_swapped = taints.clone();
    own_swapped.swap(0, 2);
    let added = |key: &str, effect: &str| with(json!({"key": key, "effect": effect}));
    let lists = [
        (
            "a taint of others added",
            added("thief.example/x", "NoExecute"),
        ),
        (
            "an own taint added",
            added("example.com/not-ready", "NoSchedule"),
        ),
        (
            "an own taint with another effect put back",
            added("example.com/storage", "NoExecute"),
        ),
        ("an own taint with a value put back", {
            let mut taints = without(&["example.com/storage"]);
            taints
                .push(json!({"key": "example.com/storage", "value": "x", "effect": "NoSchedule"}));
            taints
        }),
        (
            "an own taint without its value put back",
            added("example.com/link", "NoSchedule"),
        ),
        (
            "an own taint with another value put back",
            with(json!({"key": "example.com/link", "value": "down", "effect": "NoSchedule"})),
        ),
        (
            "an own taint with a time put back",
            with(
                json!({"key": "example.com/link", "value": "up", "effect": "NoSchedule", "timeAdded": "2026-01-01T00:00:00Z"}),
            ),
        ),
        (
            "the effect of an own taint changed",
            changed(0, "effect", json!("PreferNoSchedule")),
        ),
        (
            "the value of an own taint changed",
            changed(0, "value", json!("y")),
        ),
        (
            "the time of an own taint changed",
            changed(0, "timeAdded", json!("2026-01-01T00:00:00Z")),
        ),
        (
            "the value of a foreign taint changed",
            changed(1, "value", json!("y")),
        ),
        (
            "the effect of a foreign taint changed",
            changed(1, "effect", json!("NoExecute")),
        ),
        (
            "the time of a foreign taint changed",
            changed(5, "timeAdded", json!("2026-01-01T00:00:00Z")),
        ),
        ("an own and a foreign taint swapped", swapped),
        ("two own taints swapped", own_swapped),
        ("a foreign taint removed", without(&["foreign.example/one"])),
        (
            "an own and a foreign taint removed",
            without(&["example.com/not-ready", "foreign.example/two"]),
        ),
        ("an own taint removed and a foreign one added", {
            let mut taints = without(&["example.com/not-ready"]);
            taints.push(json!({"key": "thief.example/x", "effect": "NoSchedule"}));
            taints
        }),
        (
            "the taint of a dry run removed",
            without(&["example.com/watched"]),
        ),
        (
            "the taint of a rule for other nodes removed",
            without(&["example.com/gpu"]),
        ),
        (
            "the taint of the node's readiness removed",
            without(&["node.kubernetes.io/not-ready"]),
        ),
        ("all taints removed", Vec::new()),
    ];
    lists
        .into_iter()
        .map(|(name, taints)| Change::of(name, [SPEC, "taints"], json!(taints), TAINTS))
        .collect()
}

/// What is not the agent's to change through nodes/status, where a rule publishes.
pub(crate) fn of_status(node: &Value) -> Vec<Change> {
    const STATUS: &str = "status";
    let not_status = "may change nothing of the Node's status but the conditions example.com/StorageReady, example.com/GpuReady";
    let not_metadata = "anything else of its metadata";
    let conditions = |edit: &dyn Fn(&mut Vec<Value>)| {
        let mut conditions = node["status"]["conditions"].as_array().unwrap().clone();
        edit(&mut conditions);
        json!(conditions)
    };
    let condition = |kind: &str| json!({"type": kind, "status": "True"});
    let mut info = node["status"]["nodeInfo"].clone();
    info["kernelVersion"] = json!("0");
    let mut labels = node["metadata"]["labels"].clone();
    labels["team"] = json!("b");
    let own_and = |fields: [&'static str; 2], value: Value, name| {
        let own = conditions(&|all| all.push(condition("example.com/StorageReady")));
        Change::of(name, [STATUS, "conditions"], own, not_metadata).and(fields, value)
    };
    vec![
        Change::of(
            "a foreign condition changed",
            [STATUS, "conditions"],
            conditions(&|all| all[0]["status"] = json!("False")),
            not_status,
        ),
        Change::of(
            "a foreign condition added",
            [STATUS, "conditions"],
            conditions(&|all| all.push(condition("Thief"))),
            not_status,
        ),
        Change::of(
            "the condition of a rule for other nodes added, and another",
            [STATUS, "conditions"],
            conditions(&|all| all.extend([condition("example.com/GpuReady"), condition("Thief")])),
            not_status,
        ),
        Change::of(
            "capacity",
            [STATUS, "capacity"],
            json!({"cpu": "64"}),
            not_status,
        ),
        Change::of(
            "allocatable",
            [STATUS, "allocatable"],
            json!({"cpu": "64"}),
            not_status,
        ),
        Change::of(
            "addresses",
            [STATUS, "addresses"],
            json!([{"type": "InternalIP", "address": "192.0.2.1"}]),
            not_status,
        ),
        Change::of(
            "the kubelet's port",
            [STATUS, "daemonEndpoints"],
            json!({"kubeletEndpoint": {"Port": 1}}),
            not_status,
        ),
        Change::of("nodeInfo", [STATUS, "nodeInfo"], info, not_status),
        Change::of(
            "images",
            [STATUS, "images"],
            json!([{"names": ["x"], "sizeBytes": 1}]),
            not_status,
        ),
        Change::of(
            "volumes",
            [STATUS, "volumesAttached"],
            json!([{"name": "x", "devicePath": "y"}]),
            not_status,
        ),
        Change::of(
            "a label",
            [METADATA, "labels"],
            labels.clone(),
            not_metadata,
        ),
        Change::of(
            "an annotation",
            [METADATA, "annotations"],
            json!({"example.com/note": "b"}),
            not_metadata,
        ),
        Change::of(
            "a finalizer",
            [METADATA, "finalizers"],
            json!(["example.com/held", "example.com/for-ever"]),
            not_metadata,
        ),
        Change::of(
            "an owner",
            [METADATA, "ownerReferences"],
            json!([{"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "u"}]),
            not_metadata,
        ),
        own_and(
            [METADATA, "labels"],
            labels,
            "the own condition with a label",
        ),
    ]
}
