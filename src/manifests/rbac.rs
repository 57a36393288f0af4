//! What the ServiceAccount may ask of the API server.

use std::collections::BTreeSet;

use super::marker::Marker;
use super::pieces::LABELS;
use super::text::{indent, scalar};
use super::{Account, Manifests};
use crate::config::ObservedObject;

/// The roles that the configuration needs, each with its binding.
pub(super) fn documents(manifests: &Manifests) -> Vec<String> {
    let account = &manifests.account;
    let mut documents = Vec::from(role(
        account,
        None,
        &account.objects(),
        &cluster_rules(manifests),
    ));
    for namespace in namespaces_of_pods(manifests) {
        documents.extend(role(
            account,
            Some(namespace),
            &account.objects_for("pods"),
            PODS,
        ));
    }
    if manifests.configuration.events {
        documents.extend(role(
            account,
            Some("default"),
            &account.objects_for("events"),
            EVENTS,
        ));
    }
    documents
}

const PODS: &str = r#"- apiGroups: [""]
  # untaint asks only for the pods of its own node that have the labels of the gate. RBAC cannot say so: whoever has the
  # token can read every pod of this namespace.
  resources: [pods]
  # A list comes first where the server refuses streaming lists.
  verbs: [list, watch]
"#;

/// The Events of a Node are in the namespace default, since it has none of its own.
const EVENTS: &str = "- apiGroups: [events.k8s.io]
  resources: [events]
  verbs:
  - create
  # The same again within some minutes is one Event that counts.
  - patch
";

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

const PATCH: &str =
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

fn cluster_rules(manifests: &Manifests) -> String {
    let mut rules = String::from(NODES);
    if manifests.writing_rules().next().is_some() {
        rules.push_str(PATCH);
    }
    if manifests
        .observed()
        .any(|object| matches!(object, ObservedObject::CsiDriver(_)))
    {
        rules.push_str(CSI_NODES);
    }
    if manifests
        .writing_rules()
        .any(|rule| rule.publish_condition.is_some())
    {
        rules.push_str(NODES_STATUS);
    }
    rules.push_str(&Marker::of(manifests).role());
    rules
}

fn namespaces_of_pods(manifests: &Manifests) -> BTreeSet<&str> {
    let namespaces = manifests.observed().filter_map(|object| match object {
        ObservedObject::Pods(pods) => Some(pods.namespace.as_str()),
        _ => None,
    });
    namespaces.collect()
}

/// A role, of the cluster where it has no namespace, and its binding to the account.
fn role(account: &Account, namespace: Option<&str>, name: &str, rules: &str) -> [String; 2] {
    let kind = if namespace.is_some() {
        "Role"
    } else {
        "ClusterRole"
    };
    let head = |kind: &str| {
        let place = namespace.map(|namespace| format!("  namespace: {}\n", scalar(namespace)));
        let place = place.unwrap_or_default();
        format!(
            "apiVersion: rbac.authorization.k8s.io/v1\nkind: {kind}\nmetadata:\n{LABELS}  name: {name}\n{place}"
        )
    };
    let subject = format!(
        "- kind: ServiceAccount\n  name: {}\n  namespace: {}\n",
        scalar(&account.name),
        scalar(&account.namespace)
    );
    [
        format!("{}rules:\n{rules}", head(kind)),
        format!(
            "{}roleRef:\n{}subjects:\n{subject}",
            head(&format!("{kind}Binding")),
            indent(
                &format!("apiGroup: rbac.authorization.k8s.io\nkind: {kind}\nname: {name}"),
                2
            ),
        ),
    ]
}
