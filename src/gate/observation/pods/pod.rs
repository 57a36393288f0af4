//! The part of a Pod that matters.

use std::collections::HashMap;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{ContainerState, PodCondition, Toleration};
use serde::Deserialize;

use crate::api::object::{Metadata, Object, or_default};
use crate::taint::{Effect, TaintMatcher};

/// Label that names the revision of a DaemonSet's pod (`apps.ControllerRevisionHashLabelKey`).
pub(super) const REVISION: &str = "controller-revision-hash";

/// By their uids.
pub(super) type Pods = HashMap<String, Pod>;

#[derive(Debug, Deserialize)]
pub(in crate::gate::observation) struct Pod {
    pub(super) metadata: Metadata,
    #[serde(default)]
    spec: Spec,
    #[serde(default)]
    status: Status,
}

/// Identifies a DaemonSet of a namespace. One that is deleted and created again stays the same: its next pod replaces the
/// last one.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct DaemonSetId {
    pub(super) name: String,
    /// Not only Kubernetes has DaemonSets: OpenKruise has those of `apps.kruise.io`.
    pub(super) group: String,
}

#[derive(Debug, Default, Deserialize)]
struct Spec {
    #[serde(default, deserialize_with = "or_default")]
    tolerations: Vec<Toleration>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Status {
    phase: Option<String>,
    #[serde(default, deserialize_with = "or_default")]
    conditions: Vec<PodCondition>,
    #[serde(default, deserialize_with = "or_default")]
    container_statuses: Vec<ContainerStatus>,
}

#[derive(Debug, Deserialize)]
struct ContainerStatus {
    #[serde(default, deserialize_with = "or_default")]
    state: ContainerState,
}

impl Object for Pod {
    fn metadata(&self) -> &Metadata {
        &self.metadata
    }
}

impl Pod {
    fn ready_condition(&self) -> Option<&PodCondition> {
        let mut conditions = self.status.conditions.iter();
        conditions.find(|condition| condition.type_ == "Ready")
    }

    pub(super) fn is_ready(&self) -> bool {
        let ready = self.ready_condition();
        !self.has_ended() && ready.is_some_and(|condition| condition.status == "True")
    }

    /// When it became ready and its containers started, by its status. After a reboot the kubelet finds the containers gone,
    /// writes that the pod is not ready and starts them again: all these times change (kubelet `kubelet_pods.go`).
    pub(super) fn times(&self) -> Vec<Timestamp> {
        let ready = self.ready_condition();
        let ready = ready.and_then(|condition| condition.last_transition_time.as_ref());
        let containers = self.status.container_statuses.iter();
        let started =
            containers.filter_map(|each| each.state.running.as_ref()?.started_at.as_ref());
        let times = ready.into_iter().chain(started);
        times.map(|time| time.0).collect()
    }

    pub(super) fn is_terminating(&self) -> bool {
        self.metadata.deletion_timestamp.is_some()
    }

    pub(super) fn revision(&self) -> Option<&str> {
        self.metadata.labels.get(REVISION).map(String::as_str)
    }

    /// Whether all its containers have ended and none starts again. Its DaemonSet deletes it and creates another one
    /// (kube-controller-manager `daemon_controller.go`, `podsShouldBeOnNode`).
    pub(super) fn has_ended(&self) -> bool {
        matches!(self.status.phase.as_deref(), Some("Failed" | "Succeeded"))
    }

    /// A static pod belongs to its Node.
    pub(super) fn daemon_set(&self) -> Option<DaemonSetId> {
        let controller = self.metadata.controller();
        let controller = controller.filter(|owner| owner.kind == "DaemonSet")?;
        Some(DaemonSetId {
            name: controller.name.clone(),
            group: controller.group().to_owned(),
        })
    }

    /// Whether one of its tolerations can match a taint of `taint` (`Toleration.ToleratesTaint`, k8s.io/api core/v1).
    pub(super) fn tolerates(&self, taint: &TaintMatcher) -> bool {
        // This effect keeps no pod of a DaemonSet away.
        taint.effect == Some(Effect::PreferNoSchedule)
            || self
                .spec
                .tolerations
                .iter()
                .any(|each| can_match(each, taint))
    }
}

fn can_match(toleration: &Toleration, taint: &TaintMatcher) -> bool {
    let text = |field: &Option<String>| field.clone().unwrap_or_default();
    let (key, effect) = (text(&toleration.key), text(&toleration.effect));
    let is_equal = matches!(text(&toleration.operator).as_str(), "" | "Equal");
    (key.is_empty() || key == taint.key)
        && (effect.is_empty() || taint.effect.is_none_or(|own| own.as_str() == effect))
        // Other operators match any value, or compare numbers.
        && (!is_equal || taint.value.as_ref().is_none_or(|own| *own == text(&toleration.value)))
}

/// The pod that was created last. Its revision is the newest one on this node.
pub(super) fn newest<'p>(pods: impl Iterator<Item = &'p Pod>) -> Option<&'p Pod> {
    // Times are whole seconds: of two pods of the same second, the terminating one is older.
    pods.max_by_key(|pod| {
        let created = pod.metadata.creation_timestamp.as_ref();
        (created.map(|time| time.0), !pod.is_terminating())
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::taint::parse_taint;

    #[test]
    fn a_pod_tolerates_the_taint_if_a_toleration_could_match_it() {
        for (own, tolerations, tolerates) in [
            ("a:NoSchedule", json!(null), false),
            ("a:NoSchedule", json!([]), false),
            ("a:NoSchedule", json!([{"operator": "Exists"}]), true),
            (
                "a:NoSchedule",
                json!([{"operator": "Exists", "effect": "NoExecute"}]),
                false,
            ),
            (
                "a:NoSchedule",
                json!([{"key": "b", "operator": "Exists"}]),
                false,
            ),
            (
                "a:NoSchedule",
                json!([{"key": "b", "operator": "Exists"}, {"key": "a", "operator": "Exists"}]),
                true,
            ),
            (
                "a:NoSchedule",
                json!([{"key": "a", "operator": "Exists", "effect": "NoSchedule"}]),
                true,
            ),
            // The rule matches any value.
            (
                "a:NoSchedule",
                json!([{"key": "a", "operator": "Equal", "value": "x"}]),
                true,
            ),
            (
                "a=x:NoSchedule",
                json!([{"key": "a", "operator": "Equal", "value": "x"}]),
                true,
            ),
            ("a=x:NoSchedule", json!([{"key": "a", "value": "x"}]), true),
            ("a=x:NoSchedule", json!([{"key": "a", "value": "y"}]), false),
            ("a=x:NoSchedule", json!([{"key": "a"}]), false),
            ("a=:NoSchedule", json!([{"key": "a"}]), true),
            (
                "a=5:NoSchedule",
                json!([{"key": "a", "operator": "Lt", "value": "7"}]),
                true,
            ),
            // The rule matches any effect.
            (
                "a",
                json!([{"key": "a", "operator": "Exists", "effect": "NoExecute"}]),
                true,
            ),
            (
                "a:NoExecute",
                json!([{"key": "a", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 5}]),
                true,
            ),
            ("a:PreferNoSchedule", json!([]), true),
        ] {
            let metadata = json!({"name": "a", "uid": "1", "resourceVersion": "1"});
            let pod = json!({"metadata": metadata, "spec": {"tolerations": tolerations}});
            let pod: Pod = serde_json::from_value(pod).unwrap();
            let taint = parse_taint(own).unwrap();
            assert_eq!(pod.tolerates(&taint), tolerates, "{own} {tolerations}");
        }
    }
}
