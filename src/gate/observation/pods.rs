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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn expected(newest_revision: bool) -> Pods {
        Pods {
            namespace: "kube-system".into(),
            match_labels: [("k8s-app", "cilium"), ("version", "")]
                .map(|(key, value)| (key.into(), value.into()))
                .into(),
            newest_revision,
        }
    }

    /// A pod made in this second, of this revision if any, and what it is: ready, not ready or terminating.
    type Given = (u32, &'static str, &'static str);

    fn look(newest_revision: bool, given: &[Given]) -> Outcome {
        let pods = given.iter().enumerate().map(|(n, (second, revision, state))| {
            let mut pod = json!({
                "metadata": {
                    "name": n.to_string(),
                    "uid": n.to_string(),
                    "resourceVersion": "1",
                    "creationTimestamp": format!("2026-01-01T00:00:0{second}Z"),
                    "labels": {},
                },
                "status": {"conditions": [
                    {"type": "Initialized", "status": "True"},
                    {"type": "Ready", "status": if *state == "not ready" { "False" } else { "True" }},
                ]},
            });
            if !revision.is_empty() {
                pod["metadata"]["labels"] = json!({REVISION: revision});
            }
            if *state == "terminating" {
                pod["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:01:00Z");
            }
            (n.to_string(), serde_json::from_value(pod).unwrap())
        });
        judge(&expected(newest_revision), &pods.collect())
    }

    #[test]
    fn one_ready_pod_that_is_not_on_its_way_out_is_enough() {
        let open = || Outcome::Open("a pod in kube-system is ready on this node".into());
        let closed = |why: &str| {
            let no = "no pod in kube-system is ready on this node";
            Outcome::Closed(format!("{no}: {why}"))
        };
        let cases: [(&[Given], Outcome, Outcome); 10] = [
            (&[], closed("none is there"), closed("none is there")),
            (
                &[(0, "a", "not ready")],
                closed("1 not ready"),
                closed("1 not ready"),
            ),
            (
                &[(0, "a", "terminating")],
                closed("1 terminating"),
                closed("1 terminating"),
            ),
            (&[(0, "a", "ready")], open(), open()),
            (&[(0, "", "ready")], open(), open()),
            (
                &[
                    (0, "a", "not ready"),
                    (0, "a", "ready"),
                    (0, "a", "terminating"),
                ],
                open(),
                open(),
            ),
            (
                &[(0, "a", "ready"), (1, "b", "not ready")],
                open(),
                closed("1 not ready, 1 of an older revision"),
            ),
            (&[(0, "a", "ready"), (1, "b", "ready")], open(), open()),
            (
                &[(0, "a", "terminating"), (0, "b", "not ready")],
                closed("1 not ready, 1 terminating"),
                closed("1 not ready, 1 of an older revision"),
            ),
            (
                &[
                    (0, "a", "ready"),
                    (1, "", "not ready"),
                    (1, "", "not ready"),
                ],
                open(),
                closed("2 not ready, 1 of an older revision"),
            ),
        ];
        for (given, any, newest) in cases {
            assert_eq!(look(false, given), any, "{given:?}");
            assert_eq!(look(true, given), newest, "{given:?}");
        }
    }

    #[test]
    fn a_pod_without_a_status_is_not_ready() {
        let pod = json!({"metadata": {"name": "pod", "uid": "1", "resourceVersion": "1"}});
        let pod: Pod = serde_json::from_value(pod).unwrap();
        assert!(!pod.is_ready());
    }

    #[test]
    fn the_server_is_asked_for_the_pods_of_this_node_with_all_labels() {
        let collection = collection(&expected(false), "node-1");
        assert_eq!(collection.path, "/api/v1/namespaces/kube-system/pods");
        assert_eq!(collection.field_selector, "spec.nodeName=node-1");
        assert_eq!(collection.label_selector, "k8s-app=cilium,version=");
    }
}
