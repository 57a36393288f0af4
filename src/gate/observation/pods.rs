//! `pods`: a ready pod on this node.

use std::collections::HashMap;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{ContainerState, PodCondition};
use serde::Deserialize;

use crate::api::object::{Metadata, Object, or_default};
use crate::api::watch::Collection;
use crate::boot::Uptime;
use crate::config::Pods;
use crate::gate::Outcome;
use crate::gate::freshness::{NodeFreshness, WriteTracker};

/// Label that names the revision of a DaemonSet's pod (`apps.ControllerRevisionHashLabelKey`).
const REVISION: &str = "controller-revision-hash";

/// The part of a Pod that matters.
#[derive(Debug, Deserialize)]
pub(super) struct Pod {
    metadata: Metadata,
    #[serde(default)]
    status: Status,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Status {
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

    fn is_ready(&self) -> bool {
        let ready = self.ready_condition();
        ready.is_some_and(|condition| condition.status == "True")
    }

    /// When it became ready and its containers started, by its status. After a reboot the kubelet finds the containers gone,
    /// writes that the pod is not ready and starts them again: all these times change (kubelet `kubelet_pods.go`).
    fn times(&self) -> Vec<Timestamp> {
        let ready = self.ready_condition();
        let ready = ready.and_then(|condition| condition.last_transition_time.as_ref());
        let containers = self.status.container_statuses.iter();
        let started =
            containers.filter_map(|each| each.state.running.as_ref()?.started_at.as_ref());
        let times = ready.into_iter().chain(started);
        times.map(|time| time.0).collect()
    }

    fn is_terminating(&self) -> bool {
        self.metadata.deletion_timestamp.is_some()
    }

    fn revision(&self) -> Option<&str> {
        self.metadata.labels.get(REVISION).map(String::as_str)
    }
}

/// The pods of this node, selected by the server.
pub(super) fn collection(spec: &Pods, node: &str) -> Collection {
    let labels: Vec<_> = spec
        .match_labels
        .iter()
        .map(|(key, value)| format!("{key}={value}"))
        .collect();
    Collection {
        path: format!("/api/v1/namespaces/{}/pods", spec.namespace),
        field_selector: format!("spec.nodeName={node}"),
        label_selector: labels.join(","),
    }
}

/// Follows the writes to each pod's status, by the pod's uid.
#[derive(Debug, Default)]
pub(super) struct Tracker(HashMap<String, TrackedPod>);

#[derive(Debug, Default)]
struct TrackedPod {
    resource_version: u64,
    writes: WriteTracker,
}

/// By the pod's uid: when its status was written. Only pods whose status is from before this boot.
type StalePods = HashMap<String, String>;

impl Tracker {
    /// Compares the pods with those of the last call.
    pub(super) fn stale(
        &mut self,
        pods: &HashMap<String, Pod>,
        freshness: &NodeFreshness,
        uptime: Option<Uptime>,
    ) -> StalePods {
        self.0.retain(|uid, _| pods.contains_key(uid));
        let mut stale = StalePods::new();
        for (uid, pod) in pods {
            let tracked = self.0.entry(uid.clone()).or_default();
            // Nothing is known of a pod that a backup has replaced.
            if pod.metadata.resource_version < tracked.resource_version {
                *tracked = TrackedPod::default();
            }
            tracked.resource_version = pod.metadata.resource_version;
            let written = tracked.writes.stale(pod.times(), uptime);
            if let Some(written) = written.filter(|_| !freshness.pods_synced) {
                stale.insert(uid.clone(), written);
            }
        }
        stale
    }
}

pub(super) fn judge(expected: &Pods, pods: &HashMap<String, Pod>, stale: &StalePods) -> Outcome {
    let namespace = &expected.namespace;
    // Times are whole seconds: of two pods of the same second, the terminating one is older.
    let newest = pods.values().max_by_key(|pod| {
        let created = pod.metadata.creation_timestamp.as_ref();
        (created.map(|time| time.0), !pod.is_terminating())
    });
    let revision = newest.and_then(Pod::revision);
    let (mut old, mut terminating, mut unready) = (0, 0, 0);
    let mut ready_but_stale = None;
    for (uid, pod) in pods {
        if expected.newest_revision && pod.revision() != revision {
            old += 1;
        } else if pod.is_terminating() {
            terminating += 1;
        } else if !pod.is_ready() {
            unready += 1;
        } else if let Some(written) = stale.get(uid) {
            ready_but_stale = Some((&pod.metadata.name, written));
        } else {
            return Outcome::Open(format!("a pod in {namespace} is ready on this node"));
        }
    }
    if let Some((name, written)) = ready_but_stale {
        return Outcome::Unknown(format!(
            "pod {name} in {namespace} is ready, but the newest time in its status is {written}"
        ));
    }
    let counts = [
        (unready, "not ready"),
        (terminating, "terminating"),
        (old, "of an older revision"),
    ];
    let counts = counts.iter().filter(|(count, _)| *count > 0);
    let mut reasons: Vec<_> = counts
        .map(|(count, what)| format!("{count} {what}"))
        .collect();
    if reasons.is_empty() {
        reasons.push("no pod matches the labels".into());
    }
    let reasons = reasons.join(", ");
    Outcome::Closed(format!(
        "no pod in {namespace} is ready on this node: {reasons}"
    ))
}

#[cfg(test)]
mod tests;
