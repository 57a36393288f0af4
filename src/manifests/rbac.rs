//! What the ServiceAccount may request from the API server.

use std::collections::BTreeSet;

use super::yaml::scalar;
use super::{Manifests, policy};
use crate::config::ObservedObject;

#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum Right<'m> {
    InCluster(&'static str),
    /// The purpose in the role's name, the namespace and the rules.
    InNamespace(&'static str, &'m str, &'static str),
}

/// What a gate of this kind needs besides the permissions for Nodes.
fn of_kind(object: &ObservedObject) -> Option<Right<'_>> {
    match object {
        ObservedObject::CsiDriver(_) => Some(Right::InCluster(CSI_NODES)),
        ObservedObject::Pods(pods) => Some(Right::InNamespace("pods", &pods.namespace, PODS)),
        ObservedObject::Allocatable(_)
        | ObservedObject::NodeCondition(_)
        | ObservedObject::NodeLabel(_) => None,
    }
}

/// The roles that the configuration needs, each with its binding.
pub(super) fn documents(manifests: &Manifests) -> Vec<String> {
    let mut needed = vec![Right::InCluster(NODES)];
    if manifests.writing_rules().next().is_some() {
        needed.push(Right::InCluster(PATCH_NODES));
    }
    needed.extend(
        manifests
            .observed()
            .filter_map(of_kind)
            .collect::<BTreeSet<_>>(),
    );
    if manifests
        .writing_rules()
        .any(|rule| rule.publish_condition.is_some())
    {
        needed.push(Right::InCluster(NODES_STATUS));
    }
    if manifests.configuration.events {
        // A Node has no namespace. Its Events are in this one.
        needed.push(Right::InNamespace("events", "default", EVENTS));
    }
    let account = &manifests.account;
    let mut cluster_rules = String::new();
    let mut documents = Vec::new();
    for right in needed {
        match right {
            Right::InCluster(rules) => cluster_rules.push_str(rules),
            Right::InNamespace(purpose, namespace, rules) => {
                let name = account.objects_for(purpose);
                documents.push(role(manifests, Some(namespace), &name, rules));
            }
        }
    }
    cluster_rules.push_str(&policy::role_rules(manifests));
    documents.insert(0, role(manifests, None, &account.objects(), &cluster_rules));
    documents.extend(
        manifests
            .additions
            .flow_schema
            .then(|| flow_schema(manifests)),
    );
    documents
}

/// Puts the requests that decide removals at the priority level of the kubelets' own requests for their Nodes.
fn flow_schema(manifests: &Manifests) -> String {
    let observed: BTreeSet<_> = manifests.observed().filter_map(of_flow).collect();
    let values = manifests
        .values()
        .with("name", manifests.account.objects())
        .with("observed", observed.into_iter().collect::<String>());
    values.fill(include_str!("rbac/flow-schema.yaml"))
}

/// What a gate of this kind needs besides the requests for Nodes.
fn of_flow(object: &ObservedObject) -> Option<String> {
    match object {
        ObservedObject::CsiDriver(_) => Some(
            "- apiGroups: [storage.k8s.io]\n  resources: [csinodes]\n  verbs: [list, watch]\n  clusterScope: true\n  namespaces: [\"*\"]\n".into(),
        ),
        ObservedObject::Pods(pods) => Some(format!(
            "- apiGroups: [\"\"]\n  resources: [pods]\n  verbs: [list, watch]\n  namespaces: [{}]\n",
            scalar(&pods.namespace)
        )),
        ObservedObject::Allocatable(_)
        | ObservedObject::NodeCondition(_)
        | ObservedObject::NodeLabel(_) => None,
    }
}

const NODES: &str = r#"- apiGroups: [""]
  # Taints are in the spec, so untaint needs no permission for nodes/status to change them.
  resources: [nodes]
  verbs:
  # Of its own Node, by the field selector metadata.name. If the server does not support streaming lists, it lists
  # first.
  - list
  - watch
  # The current Node: after a conflict, after a request without an answer, and at the end of `run --once`.
  - get
"#;

/// After [`NODES`].
const PATCH_NODES: &str =
    "  # A JSON Patch that tests the Node's uid and the taint before it removes the taint.
  - patch
";

const CSI_NODES: &str = "- apiGroups: [storage.k8s.io]
  # For csiDriver gates: the CSINode of its own Node.
  resources: [csinodes]
  verbs: [list, watch]
";

const NODES_STATUS: &str = r#"- apiGroups: [""]
  # For publishCondition.
  resources: [nodes/status]
  verbs: [patch]
"#;

const PODS: &str = r#"- apiGroups: [""]
  # For pods gates. untaint asks only for pods of its own node, with the matchLabels of the gate. RBAC cannot restrict
  # that: with the token, every pod of this namespace can be read.
  resources: [pods]
  # If the server does not support streaming lists, untaint lists first.
  verbs: [list, watch]
"#;

const EVENTS: &str = "- apiGroups: [events.k8s.io]
  resources: [events]
  verbs:
  - create
  # If something happens again within some minutes, untaint raises the count of the same Event.
  - patch
";

/// A Role or, without a namespace, a ClusterRole, with its binding to the account.
fn role(manifests: &Manifests, namespace: Option<&str>, name: &str, rules: &str) -> String {
    let (kind, place) = match namespace {
        Some(namespace) => ("Role", format!("namespace: {}", scalar(namespace))),
        None => ("ClusterRole", String::new()),
    };
    let values = manifests.values().with("kind", kind).with("name", name);
    let values = values.with("inNamespace", place).with("rules", rules);
    values.fill(include_str!("rbac/role.yaml"))
}
