//! Changes of a Node, and every kind of request that could make them.

mod status;
mod taints;

use http::Method;
use serde_json::{Value, json};

pub(crate) use self::status::{NOT_STATUS, of_status};
pub(crate) use self::taints::of_taints;
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

/// What is not the agent's to change, of a Node of [`crate::installation::rich_node`], through the Node itself.
pub(crate) fn of_nodes(node: &Value) -> Vec<Change> {
    let not_metadata =
        "may not change the Node's labels, annotations or anything else in its metadata";
    let not_spec = "may change nothing in the Node's spec except taints";
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
