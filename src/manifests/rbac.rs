//! What the ServiceAccount may ask of the API server.

use std::collections::BTreeSet;

use super::yaml::scalar;
use super::{Manifests, policy};
use crate::config::Observed;

/// The rules of a role.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum Right<'m> {
    InCluster(&'static str),
    /// With what it is for, as the role's name has it.
    InNamespace(&'static str, &'m str, &'static str),
}

/// What a kind of gate needs besides the right to Nodes.
fn of_kind(object: &Observed) -> Option<Right<'_>> {
    match object {
        Observed::CsiDriver(_) => Some(Right::InCluster(CSI_NODES)),
        Observed::Pods(pods) => Some(Right::InNamespace("pods", &pods.namespace, PODS)),
        Observed::NodeCondition(_) | Observed::Allocatable(_) => None,
    }
}

/// The roles that the configuration needs, each with its binding.
pub(super) fn documents(manifests: &Manifests) -> Vec<String> {
    let mut rights: Vec<_> = vec![Right::InCluster(NODES)];
    if manifests.writing_rules().next().is_some() {
        rights.push(Right::InCluster(PATCH_NODES));
    }
    rights.extend(
        manifests
            .observed()
            .filter_map(of_kind)
            .collect::<BTreeSet<_>>(),
    );
    if manifests
        .writing_rules()
        .any(|rule| rule.publish_condition.is_some())
    {
        rights.push(Right::InCluster(NODES_STATUS));
    }
    if manifests.configuration.events {
        // The Events of a Node, which has no namespace, are in this one.
        rights.push(Right::InNamespace("events", "default", EVENTS));
    }
    let account = &manifests.account;
    let mut cluster_rules = String::new();
    let mut roles = Vec::new();
    for right in rights {
        match right {
            Right::InCluster(rules) => cluster_rules.push_str(rules),
            Right::InNamespace(purpose, namespace, rules) => {
                let name = account.objects_for(purpose);
                roles.push(role(manifests, Some(namespace), &name, rules));
            }
        }
    }
    cluster_rules.push_str(&policy::role_rules(manifests));
    roles.insert(0, role(manifests, None, &account.objects(), &cluster_rules));
    roles
}

const NODES: &str = r#"- apiGroups: [""]
  # Taints are in the spec: what is done to them needs no right to nodes/status.
  resources: [nodes]
  verbs:
  # Its own Node, by the field selector metadata.name. Where the server refuses streaming lists, a list comes first.
  - list
  - watch
  # The Node as it is now: after a conflict or an answer that never came, and for the last look of `run --once`.
  - get
"#;

/// After [`NODES`].
const PATCH_NODES: &str =
    "  # A JSON Patch that tests the Node's uid and the taint before it removes the taint.
  - patch
";

const CSI_NODES: &str = "- apiGroups: [storage.k8s.io]
  # For csiDriver: the CSINode of its own Node.
  resources: [csinodes]
  verbs: [list, watch]
";

const NODES_STATUS: &str = r#"- apiGroups: [""]
  # For publishCondition.
  resources: [nodes/status]
  verbs: [patch]
"#;

const PODS: &str = r#"- apiGroups: [""]
  # untaint asks only for the pods of its own node that have the labels of the gate. RBAC cannot say so: whoever has the
  # token can read every pod of this namespace.
  resources: [pods]
  # A list comes first where the server refuses streaming lists.
  verbs: [list, watch]
"#;

const EVENTS: &str = "- apiGroups: [events.k8s.io]
  resources: [events]
  verbs:
  - create
  # The same again within some minutes is one Event that counts.
  - patch
";

/// A role, of the cluster where it has no namespace, and its binding to the account.
fn role(manifests: &Manifests, namespace: Option<&str>, name: &str, rules: &str) -> String {
    let (kind, place) = match namespace {
        Some(namespace) => ("Role", format!("namespace: {}", scalar(namespace))),
        None => ("ClusterRole", String::new()),
    };
    let values = manifests.values().with("kind", kind).with("name", name);
    let values = values.with("inNamespace", place).with("rules", rules);
    values.fill(include_str!("rbac/role.yaml"))
}
