//! The kinds of objects that a timeline follows.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;

use serde_json::Value;

use super::{World, condition};

#[derive(Clone, Copy)]
pub(super) enum Kind {
    Node,
    Pod,
    CsiNode,
    DaemonSet,
}

impl Kind {
    pub(super) const ALL: [Self; 4] = [Self::Node, Self::Pod, Self::CsiNode, Self::DaemonSet];

    /// Where its objects are in the API.
    pub(super) fn path(self) -> &'static str {
        match self {
            Self::Node => "/api/v1/nodes",
            Self::Pod => "/api/v1/pods",
            Self::CsiNode => "/apis/storage.k8s.io/v1/csinodes",
            Self::DaemonSet => "/apis/apps/v1/daemonsets",
        }
    }

    pub(super) fn of(self, world: &mut World) -> &mut BTreeMap<String, Arc<Value>> {
        match self {
            Self::Node => &mut world.nodes,
            Self::Pod => &mut world.pods,
            Self::CsiNode => &mut world.csi_nodes,
            Self::DaemonSet => &mut world.daemon_sets,
        }
    }

    /// What the timeline says of an object that changes: subjects and texts.
    pub(super) fn describe(self, name: &str, object: &Value) -> Vec<(String, String)> {
        match self {
            Self::Node => describe_node(name, object),
            Self::Pod => vec![(format!("pod {name}"), describe_pod(object))],
            Self::CsiNode => vec![(format!("CSINode {name}"), describe_csi_node(object))],
            Self::DaemonSet => {
                let status = &object["status"];
                let (wanted, ready) = (&status["desiredNumberScheduled"], &status["numberReady"]);
                vec![(
                    format!("DaemonSet {name}"),
                    format!("desired {wanted}, ready {ready}"),
                )]
            }
        }
    }
}

/// How many taints a line shows.
const MOST_TAINTS: usize = 4;

fn describe_node(name: &str, node: &Value) -> Vec<(String, String)> {
    let mut taints = testkit::taints(node);
    let hidden = taints.len().saturating_sub(MOST_TAINTS);
    taints.truncate(MOST_TAINTS);
    let mut taints = taints.join(" ");
    if hidden > 0 {
        let _ = write!(taints, " and {hidden} more");
    }
    let mut lines = vec![
        (
            format!("node {name} Ready"),
            condition(node, "Ready").to_owned(),
        ),
        (
            format!("node {name} taints"),
            if taints.is_empty() {
                "none".to_owned()
            } else {
                taints
            },
        ),
    ];
    // The names of the resources of device plugins contain a domain.
    for (resource, capacity) in node["status"]["capacity"].as_object().into_iter().flatten() {
        if resource.contains('.') {
            let allocatable = &node["status"]["allocatable"][resource];
            let text = format!("capacity {capacity}, allocatable {allocatable}");
            lines.push((format!("node {name} {resource}"), text));
        }
    }
    lines
}

fn describe_csi_node(csi_node: &Value) -> String {
    let drivers = csi_node["spec"]["drivers"].as_array().into_iter().flatten();
    let drivers: Vec<_> = drivers
        .map(|driver| format!("{} {}", driver["name"], driver["allocatable"]))
        .collect();
    if drivers.is_empty() {
        "no drivers".to_owned()
    } else {
        drivers.join(", ")
    }
}

fn describe_pod(pod: &Value) -> String {
    let status = &pod["status"];
    let text = |value: &Value, missing: &str| value.as_str().unwrap_or(missing).to_owned();
    let mut parts = vec![
        text(&status["phase"], "new"),
        text(&pod["spec"]["nodeName"], "no node"),
        text(&status["podIP"], "no address"),
        format!("ready {}", condition(pod, "Ready")),
    ];
    for list in ["initContainerStatuses", "containerStatuses"] {
        for container in status[list].as_array().into_iter().flatten() {
            let state = container["state"]
                .as_object()
                .and_then(|state| state.iter().next());
            let (state, detail) =
                state.map_or(("?", &Value::Null), |(state, detail)| (state, detail));
            let reason = text(&detail["reason"], state);
            let restarts = container["restartCount"].as_u64().unwrap_or_default();
            let again = if restarts == 0 {
                String::new()
            } else {
                format!(" (restart {restarts})")
            };
            parts.push(format!("{} {reason}{again}", text(&container["name"], "?")));
        }
    }
    if !pod["metadata"]["deletionTimestamp"].is_null() {
        parts.push("ending".to_owned());
    }
    parts.join(", ")
}
