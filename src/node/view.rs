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
    /// `status.capacity`.
    pub capacity: BTreeMap<String, Quantity>,
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
    capacity: BTreeMap<String, Quantity>,
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
            capacity: node.status.capacity,
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
    /// The next Node of the watch replaces the known one, even if its version is lower.
    relisting: bool,
    /// The known Node is from an answer that arrived after the list began, and may be newer than the list.
    answered: bool,
}

impl Latest {
    /// `None` while no Node is known to exist.
    pub fn get(&self) -> Option<&NodeView> {
        self.node.as_ref()
    }

    /// Records `node`, which the watch delivers, unless it is older than what is known: after the answer to a PATCH, the
    /// watch may still deliver the Node from before. Another uid is another Node, and always replaces the one known.
    /// Returns whether it was recorded.
    pub fn observe(&mut self, node: NodeView) -> bool {
        let is_listed = std::mem::take(&mut self.relisting);
        let replaces = is_listed && !std::mem::take(&mut self.answered);
        self.record(node, replaces)
    }

    /// The same for the Node in the answer to a request. Answers can overtake each other and the list, so none replaces a
    /// newer Node.
    pub fn answered(&mut self, node: NodeView) -> bool {
        let is_recorded = self.record(node, false);
        self.answered |= is_recorded && self.relisting;
        is_recorded
    }

    fn record(&mut self, node: NodeView, replaces: bool) -> bool {
        let is_older = |known: &NodeView| {
            let (known, new) = (&known.metadata, &node.metadata);
            known.uid == new.uid && known.resource_version >= new.resource_version
        };
        let is_recorded = replaces || !self.node.as_ref().is_some_and(is_older);
        if is_recorded {
            self.node = Some(node);
        }
        is_recorded
    }

    /// A list without caches begins. If it has an older Node than the one known, a backup was restored.
    pub fn begin_relist(&mut self) {
        self.relisting = true;
        self.answered = false;
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
mod tests;
