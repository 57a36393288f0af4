//! `pods`: ready pods on this node. `daemon_sets` judges those of DaemonSets.

mod daemon_sets;
mod pod;
mod tracker;

use std::time::Instant;

use jiff::Timestamp;

use super::Judgement;
use crate::api::watch::Collection;
use crate::config;
use crate::gate::Outcome;
use crate::taint::TaintMatcher;
use daemon_sets::Departures;
use pod::{Pod, Pods, newest};
use tracker::StalePods;
pub(super) use tracker::Tracker;

/// The pods of this node, selected by the server. It keeps the watches of pods by `spec.nodeName`, so a change of another
/// node's pod costs this watch nothing (kube-apiserver `registry/core/pod/storage/storage.go`, `TriggerFunc`).
pub(super) fn collection(spec: &config::Pods, node: &str) -> Collection {
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

/// What decides, together with the pods.
pub(super) struct Known<'a> {
    pub(super) stale: StalePods,
    /// The taints of the rule. The first is the one that the rule removes.
    pub(super) taints: &'a [TaintMatcher],
    /// The uid of the pod that becomes ready only when this program has ended.
    pub(super) waiting_pod: Option<&'a str>,
    pub(super) now: Instant,
    /// The same moment, for people.
    pub(super) clock: Timestamp,
}

impl Known<'_> {
    /// Whether the pod waits for the end of this program. A pod that is ready does not.
    fn is_waiting(&self, pod: &Pod) -> bool {
        let is_ready = pod.is_ready() && self.doubt(pod).is_none();
        !is_ready && self.waiting_pod == Some(pod.metadata.uid.as_str())
    }

    /// Why it is unknown whether a ready pod has become ready in this boot.
    fn doubt(&self, pod: &Pod) -> Option<String> {
        let written = self.stale.get(&pod.metadata.uid)?;
        Some(format!(
            "is ready, but the newest time in its status is {written}"
        ))
    }
}

pub(super) fn judge(
    expected: &config::Pods,
    pods: &Pods,
    known: &Known<'_>,
    departures: &mut Departures,
) -> Judgement {
    if expected.is_of_daemon_sets() {
        daemon_sets::judge(expected, pods, known, departures)
    } else {
        judge_one(expected, pods, known).into()
    }
}

fn judge_one(expected: &config::Pods, pods: &Pods, known: &Known<'_>) -> Outcome {
    let namespace = &expected.namespace;
    let revision = newest(pods.values()).and_then(Pod::revision);
    let (mut old, mut terminating, mut waiting, mut unready) = (0, 0, 0, 0);
    let mut ready_but_stale = None;
    for pod in pods.values() {
        if expected.newest_revision && pod.revision() != revision {
            old += 1;
        } else if pod.is_terminating() {
            terminating += 1;
        } else if known.is_waiting(pod) {
            waiting += 1;
        } else if !pod.is_ready() {
            unready += 1;
        } else if let Some(doubt) = known.doubt(pod) {
            let name = &pod.metadata.name;
            ready_but_stale = Some(format!("pod {name} in {namespace} {doubt}"));
        } else {
            return Outcome::Open(format!("a pod in {namespace} is ready on this node"));
        }
    }
    if let Some(reason) = ready_but_stale {
        return Outcome::Unknown(reason);
    }
    let counts = [
        (unready, "not ready"),
        (waiting, "waiting until this untaint ends"),
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
