//! What a gate can look at through the API server, as validated values.

use std::collections::BTreeMap;

use serde::Serialize;

/// An object of this node, and what it must say.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Observed {
    /// A CSI driver has registered with the kubelet: it is in the node's `CSINode`. The race it closes is
    /// kubernetes#95911.
    CsiDriver(CsiDriver),
    /// `status.allocatable` of the Node has some of a resource.
    Allocatable(Allocatable),
    /// A condition of the Node has a status.
    NodeCondition(NodeCondition),
    /// A pod on this node is ready.
    Pods(Pods),
}

/// A CSI driver.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CsiDriver {
    /// As in `spec.drivers[].name`, such as `ebs.csi.aws.com`.
    pub name: String,
    /// Whether `allocatable.count` must be there too, and not zero. Absent, it means that there is no limit.
    pub allocatable: bool,
}

/// A resource.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Allocatable {
    /// A resource name, such as `nvidia.com/gpu`. It must be there and not zero.
    pub resource: String,
}

/// A condition of the Node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct NodeCondition {
    /// Its type, such as `Ready`.
    #[serde(rename = "type")]
    pub kind: String,
    /// `True`, `False` or `Unknown`, in quotes; default `True`.
    pub status: String,
}

/// Pods on this node, at least one of which must be ready and not terminating.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Pods {
    /// Theirs.
    pub namespace: String,
    /// Labels that they all have; at least one.
    pub match_labels: BTreeMap<String, String>,
    /// Whether only pods of the newest revision count: those with the `controller-revision-hash` of the pod on this
    /// node that was created last.
    pub newest_revision: bool,
}
