//! The Node as the agent knows it. Pure.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{NodeCondition, Taint};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use serde::Deserialize;

use crate::api::object::{Metadata, Object, or_default};
use crate::taint::{Effect, TaintMatcher};

/// The fields of a Node that matter here, as the server sent them.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(from = "NodeObject")]
pub struct NodeView {
    pub metadata: Metadata,
    /// `spec.taints`, in their order.
    pub taints: Vec<Taint>,
    /// `status.allocatable`.
    pub allocatable: BTreeMap<String, Quantity>,
    /// `status.conditions`, in their order.
    pub conditions: Vec<NodeCondition>,
    /// `status.nodeInfo.bootID`: the boot that the kubelet reported; empty before.
    pub boot_id: String,
}

impl Object for NodeView {
    fn metadata(&self) -> &Metadata {
        &self.metadata
    }
}

#[derive(Deserialize)]
struct NodeObject {
    metadata: Metadata,
    #[serde(default)]
    spec: Spec,
    #[serde(default)]
    status: Status,
}

#[derive(Deserialize, Default)]
struct Spec {
    #[serde(default, deserialize_with = "or_default")]
    taints: Vec<Taint>,
}

#[derive(Deserialize, Default)]
struct Status {
    #[serde(default, deserialize_with = "or_default")]
    allocatable: BTreeMap<String, Quantity>,
    #[serde(default, deserialize_with = "or_default")]
    conditions: Vec<NodeCondition>,
    #[serde(default, rename = "nodeInfo", deserialize_with = "or_default")]
    node_info: NodeInfo,
}

#[derive(Deserialize, Default)]
struct NodeInfo {
    #[serde(default, rename = "bootID", deserialize_with = "or_default")]
    boot_id: String,
}

impl From<NodeObject> for NodeView {
    fn from(node: NodeObject) -> Self {
        Self {
            metadata: node.metadata,
            taints: node.spec.taints,
            allocatable: node.status.allocatable,
            conditions: node.status.conditions,
            boot_id: node.status.node_info.boot_id,
        }
    }
}

/// Label that Karpenter sets together with removing [`UNREGISTERED`].
const REGISTERED: &str = "karpenter.sh/registered";
/// Karpenter's own start-up taint, with `NoExecute`.
const UNREGISTERED: &str = "karpenter.sh/unregistered";
/// With this label, Karpenter does not restore taints at registration.
const DO_NOT_SYNC_TAINTS: &str = "karpenter.sh/do-not-sync-taints";
/// Label of every Node that Karpenter manages.
const NODEPOOL: &str = "karpenter.sh/nodepool";

impl NodeView {
    /// Whether the Node has all of these labels.
    pub fn selected_by(&self, selector: &BTreeMap<String, String>) -> bool {
        selector
            .iter()
            .all(|(key, value)| self.metadata.labels.get(key) == Some(value))
    }

    /// Whether some taint of the Node is the rule's.
    pub fn has(&self, matcher: &TaintMatcher) -> bool {
        self.taints.iter().any(|taint| matcher.matches(taint))
    }

    /// Whether Karpenter would undo a removal now: until a NodeClaim is registered, Karpenter restores every taint of its
    /// NodePool in each reconcile (karpenter `nodeclaim/lifecycle/registration.go`, `syncNode`).
    pub fn awaits_registration(&self) -> bool {
        let unregistered =
            |taint: &Taint| taint.key == UNREGISTERED && taint.effect == Effect::NoExecute.as_str();
        self.taints.iter().any(unregistered)
            && !self.is_labelled(REGISTERED)
            && !self.is_labelled(DO_NOT_SYNC_TAINTS)
    }

    /// Whether Karpenter may still taint the Node: it manages the Node and has not registered it.
    pub fn may_be_tainted_by_karpenter(&self) -> bool {
        self.awaits_registration()
            || (self.metadata.labels.contains_key(NODEPOOL) && !self.is_labelled(REGISTERED))
    }

    fn is_labelled(&self, label: &str) -> bool {
        self.metadata
            .labels
            .get(label)
            .is_some_and(|value| value == "true")
    }
}

/// The newest version of the Node, from the watch or from the answer to a GET or PATCH.
#[derive(Debug, Default)]
pub struct Latest {
    node: Option<NodeView>,
    /// The next Node replaces the known one, even if its version is lower.
    relisting: bool,
}

impl Latest {
    /// `None` while no Node is known to exist.
    pub fn get(&self) -> Option<&NodeView> {
        self.node.as_ref()
    }

    /// Records `node` unless it is older than what is known: after the answer to a PATCH, the watch may still deliver the
    /// Node from before. Another uid is another Node, and always replaces the one known. Returns whether it was recorded.
    pub fn observe(&mut self, node: NodeView) -> bool {
        let is_older = |known: &NodeView| {
            let (known, new) = (&known.metadata, &node.metadata);
            known.uid == new.uid && known.resource_version >= new.resource_version
        };
        if !self.relisting && self.node.as_ref().is_some_and(is_older) {
            return false;
        }
        self.node = Some(node);
        self.relisting = false;
        true
    }

    /// A list without caches begins. If it has an older Node than the one known, a backup was restored.
    pub fn begin_relist(&mut self) {
        self.relisting = true;
    }

    /// The list is complete. If it was empty, there is no Node.
    pub fn end_relist(&mut self) {
        if std::mem::take(&mut self.relisting) {
            self.node = None;
        }
    }

    /// The Node with this uid was deleted. Returns whether it was the one known.
    pub fn deleted(&mut self, uid: &str) -> bool {
        self.node
            .take_if(|known| known.metadata.uid == uid)
            .is_some()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn view(value: serde_json::Value) -> NodeView {
        serde_json::from_value(value).unwrap()
    }

    fn version(uid: &str, resource_version: &str) -> NodeView {
        view(json!({"metadata": {"name": "node", "uid": uid, "resourceVersion": resource_version}}))
    }

    #[test]
    fn a_node_without_labels_spec_or_taints_has_none() {
        let node = version("u", "7");
        assert_eq!(
            (
                node.metadata.resource_version,
                node.metadata.labels.len(),
                node.taints.len()
            ),
            (7, 0, 0)
        );
        let nulls = json!({"metadata": {"name": "node", "uid": "u", "resourceVersion": "7", "labels": null}, "spec": {"taints": null}});
        assert_eq!(view(nulls), node);
    }

    #[test]
    fn an_older_node_arriving_after_a_newer_one_is_dropped() {
        let mut latest = Latest::default();
        assert!(latest.observe(version("u", "10")));
        assert!(
            !latest.observe(version("u", "9")),
            "9 compares below 10, as integers do and strings do not"
        );
        assert!(!latest.observe(version("u", "10")));
        assert!(latest.observe(version("u", "11")));
        assert_eq!(latest.get().unwrap().metadata.resource_version, 11);
    }

    #[test]
    fn after_a_restored_backup_the_relisted_node_is_recorded_although_its_version_is_lower() {
        let mut latest = Latest::default();
        latest.observe(version("u", "1000"));
        latest.begin_relist();
        assert!(latest.observe(version("u", "50")));
        assert!(
            !latest.observe(version("u", "49")),
            "from then on versions count again"
        );
        latest.end_relist();
        assert!(latest.get().is_some());
    }

    #[test]
    fn a_node_that_the_new_list_does_not_have_no_longer_exists() {
        let mut latest = Latest::default();
        latest.observe(version("u", "1"));
        latest.begin_relist();
        latest.end_relist();
        assert_eq!(latest.get(), None);
    }

    #[test]
    fn a_recreated_node_is_recorded_although_its_version_is_lower_and_the_deletion_of_the_old_one_is_ignored()
     {
        let mut latest = Latest::default();
        latest.observe(version("old", "10"));
        assert!(latest.observe(version("new", "3")));
        assert!(!latest.deleted("old"));
        assert_eq!(latest.get().unwrap().metadata.uid, "new");
        assert!(latest.deleted("new"));
        assert_eq!(latest.get(), None);
    }

    #[test]
    fn a_node_that_karpenter_has_not_registered_awaits_registration() {
        let node = |labels: serde_json::Value, effect: &str| {
            view(json!({
                "metadata": {"name": "node", "uid": "u", "resourceVersion": "1", "labels": labels},
                "spec": {"taints": [{"key": "karpenter.sh/unregistered", "effect": effect}]},
            }))
        };
        assert!(node(json!({}), "NoExecute").awaits_registration());
        assert!(
            !node(json!({}), "NoSchedule").awaits_registration(),
            "Karpenter drops only the NoExecute one"
        );
        assert!(
            !node(json!({"karpenter.sh/registered": "true"}), "NoExecute").awaits_registration()
        );
        assert!(
            !node(
                json!({"karpenter.sh/do-not-sync-taints": "true"}),
                "NoExecute"
            )
            .awaits_registration()
        );
        assert!(!version("u", "1").awaits_registration());
    }

    #[test]
    fn a_node_of_a_nodepool_may_be_tainted_until_it_is_labelled_as_registered() {
        let node = |labels| {
            view(
                json!({"metadata": {"name": "node", "uid": "u", "resourceVersion": "1", "labels": labels}}),
            )
        };
        assert!(node(json!({"karpenter.sh/nodepool": "p"})).may_be_tainted_by_karpenter());
        let registered = json!({"karpenter.sh/nodepool": "p", "karpenter.sh/registered": "true"});
        assert!(!node(registered).may_be_tainted_by_karpenter());
        assert!(!node(json!({})).may_be_tainted_by_karpenter());
    }
}
