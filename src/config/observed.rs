//! What a gate can look at through the API server, as validated values.

use std::collections::BTreeMap;
use std::time::Duration;

use schemars::JsonSchema;
use serde::Serialize;

use super::duration::{self, DURATION};
use super::objects::{STATUSES, default_status};
use crate::syntax::{CSI_DRIVER_NAME, DNS_LABEL, QUALIFIED_NAME};
use crate::syntax::{Form, labels};

/// An object of this node, and what it must say.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum ObservedObject {
    /// A CSI driver that has registered with the kubelet: it is in the node's CSINode.
    CsiDriver(CsiDriver),
    /// A resource that the Node has some of, by its `status.allocatable`.
    Allocatable(Allocatable),
    /// A condition of the Node and its status.
    NodeCondition(NodeCondition),
    /// A ready pod on this node.
    Pods(Pods),
}

/// A CSI driver. The race it closes is kubernetes#95911.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CsiDriver {
    /// As in `spec.drivers[].name`, such as `ebs.csi.aws.com`.
    #[schemars(transform = Form(&CSI_DRIVER_NAME))]
    pub name: String,
    /// `allocatable.count` must be there too, and not zero.
    #[schemars(default)]
    pub allocatable: bool,
}

/// A resource.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Allocatable {
    /// A resource such as `nvidia.com/gpu`, which must be there and above zero.
    #[schemars(transform = Form(&QUALIFIED_NAME))]
    pub resource: String,
}

/// A condition of the Node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NodeCondition {
    /// The condition's type, such as `Ready`.
    #[serde(rename = "type")]
    #[schemars(transform = Form(&QUALIFIED_NAME))]
    pub kind: String,
    /// What its status must be, in quotes.
    #[schemars(default = "default_status", extend("enum" = STATUSES))]
    pub status: String,
    /// The oldest that `lastHeartbeatTime` may be; `1m` or more. For conditions that are written time and again.
    #[serde(
        skip_serializing_if = "Option::is_none",
        serialize_with = "duration::serialize_some"
    )]
    #[schemars(default, with = "String", transform = Form(&DURATION))]
    pub max_age: Option<Duration>,
}

impl NodeCondition {
    /// The least `maxAge`.
    pub const LEAST_AGE: Duration = Duration::from_mins(1);
}

/// Pods on this node, at least one of which must be ready and not terminating.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Pods {
    /// Theirs.
    #[schemars(transform = Form(&DNS_LABEL))]
    pub namespace: String,
    /// Labels that they all have; at least one.
    #[schemars(transform = labels, extend("minProperties" = 1))]
    pub match_labels: BTreeMap<String, String>,
    /// Only pods of the newest revision count: those with the `controller-revision-hash` of the pod on this node that
    /// was created last.
    #[schemars(default)]
    pub newest_revision: bool,
}
