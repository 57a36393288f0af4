//! `pods`: a ready pod on this node. Pure.

use std::collections::HashMap;

use serde::Deserialize;

use crate::api::object::{Metadata, Object, or_default};
use crate::api::watch::Collection;
use crate::config::Pods;
use crate::gate::Outcome;

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
struct Status {
    #[serde(default, deserialize_with = "or_default")]
    conditions: Vec<Condition>,
}

#[derive(Debug, Deserialize)]
struct Condition {
    r#type: String,
    status: String,
}

impl Object for Pod {
    fn metadata(&self) -> &Metadata {
        &self.metadata
    }
}

impl Pod {
    fn is_ready(&self) -> bool {
        let ready =
            |condition: &Condition| condition.r#type == "Ready" && condition.status == "True";
        self.status.conditions.iter().any(ready)
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

pub(super) fn judge(expected: &Pods, pods: &HashMap<String, Pod>) -> Outcome {
    find(expected, pods).into()
}

fn find(expected: &Pods, pods: &HashMap<String, Pod>) -> Result<String, String> {
    // Times are whole seconds: of two pods of the same second, the one that is on its way out is the older one.
    let newest = pods.values().max_by_key(|pod| {
        let created = pod.metadata.creation_timestamp.as_ref();
        (created.map(|time| time.0), !pod.is_terminating())
    });
    let revision = newest.and_then(Pod::revision);
    let (mut old, mut terminating, mut unready) = (0, 0, 0);
    for pod in pods.values() {
        if expected.newest_revision && pod.revision() != revision {
            old += 1;
        } else if pod.is_terminating() {
            terminating += 1;
        } else if pod.is_ready() {
            return Ok(format!(
                "a pod in {} is ready on this node",
                expected.namespace
            ));
        } else {
            unready += 1;
        }
    }
    let counts = [
        (unready, "not ready"),
        (terminating, "terminating"),
        (old, "of an older revision"),
    ];
    let counts: Vec<_> = counts
        .iter()
        .filter(|(n, _)| *n > 0)
        .map(|(n, what)| format!("{n} {what}"))
        .collect();
    let counts = if counts.is_empty() {
        "none is there".into()
    } else {
        counts.join(", ")
    };
    Err(format!(
        "no pod in {} is ready on this node: {counts}",
        expected.namespace
    ))
}
