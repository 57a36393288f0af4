use std::collections::HashMap;

use serde_json::json;

use super::pod::REVISION;
use super::*;
use crate::boot::Uptime;
use crate::gate::NodeFreshness;

fn expected(newest_revision: bool) -> config::Pods {
    config::Pods {
        namespace: "kube-system".into(),
        match_labels: [("k8s-app", "cilium"), ("version", "")]
            .map(|(key, value)| (key.into(), value.into()))
            .into(),
        every: false,
        daemon_sets: Vec::new(),
        newest_revision,
    }
}

fn known(stale: StalePods) -> Known<'static> {
    Known {
        stale,
        taints: &[],
        waiting_pod: Some("waiting"),
        now: Instant::now(),
        clock: Timestamp::now(),
    }
}

/// A pod that was created in this second, its revision if any, and its state: ready, not ready or terminating.
type Given = (u32, &'static str, &'static str);

fn outcome(newest_revision: bool, given: &[Given]) -> Outcome {
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
    judge_one(
        &expected(newest_revision),
        &pods.collect(),
        &known(StalePods::new()),
    )
}

#[test]
fn one_ready_pod_that_is_not_terminating_is_enough() {
    let open = || Outcome::Open("a pod in kube-system is ready on this node".into());
    let closed = |why: &str| {
        let no = "no pod in kube-system is ready on this node";
        Outcome::Closed(format!("{no}: {why}"))
    };
    let cases: [(&[Given], Outcome, Outcome); 10] = [
        (
            &[],
            closed("no pod matches the labels"),
            closed("no pod matches the labels"),
        ),
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
        assert_eq!(outcome(false, given), any, "{given:?}");
        assert_eq!(outcome(true, given), newest, "{given:?}");
    }
}

#[test]
fn a_pod_without_a_status_and_one_that_has_ended_are_not_ready() {
    let ready = json!([{"type": "Ready", "status": "True"}]);
    for (status, is_ready) in [
        (json!(null), false),
        (json!({"conditions": ready}), true),
        (json!({"conditions": ready, "phase": "Running"}), true),
        (json!({"conditions": ready, "phase": "Failed"}), false),
        (json!({"conditions": ready, "phase": "Succeeded"}), false),
    ] {
        let mut pod = json!({"metadata": {"name": "pod", "uid": "1", "resourceVersion": "1"}});
        if !status.is_null() {
            pod["status"] = status.clone();
        }
        let pod: Pod = serde_json::from_value(pod).unwrap();
        assert_eq!(pod.is_ready(), is_ready, "{status}");
    }
}

/// An init container of the pod waits for the end of `run --once`, so the pod cannot become ready before that.
#[test]
fn the_reason_names_a_pod_that_waits_for_this_program() {
    let outcome = |ready: &str, stale: &[&str]| {
        let pod = json!({
            "metadata": {"name": "own", "uid": "waiting", "resourceVersion": "1"},
            "status": {"conditions": [{"type": "Ready", "status": ready}]},
        });
        let pod: Pod = serde_json::from_value(pod).unwrap();
        let pods = Pods::from([("waiting".into(), pod)]);
        let stale = stale.iter().map(|uid| ((*uid).into(), "old".into()));
        judge_one(&expected(false), &pods, &known(stale.collect()))
    };
    let reason = "no pod in kube-system is ready on this node: 1 waiting until this untaint ends";
    let waits = Outcome::Closed(reason.into());
    assert_eq!(outcome("False", &[]), waits);
    // Its status is from before the reboot.
    assert_eq!(outcome("True", &["waiting"]), waits);
    // It has no such init container.
    assert!(outcome("True", &[]).is_open());
}

#[test]
fn the_server_is_asked_for_the_pods_of_this_node_with_all_labels() {
    let collection = collection(&expected(false), "node-1");
    assert_eq!(collection.path, "/api/v1/namespaces/kube-system/pods");
    assert_eq!(collection.field_selector, "spec.nodeName=node-1");
    assert_eq!(collection.label_selector, "k8s-app=cilium,version=");
}

/// The clock of these tests.
fn uptime() -> Uptime {
    let at = |time: &str| time.parse().unwrap();
    Uptime {
        boot: at("2026-03-01T12:00:00Z"),
        now: at("2026-03-01T12:05:00Z"),
    }
}

/// A pod whose Ready condition and container are of these times.
fn pod(version: u64, ready: (&str, Option<&str>), started: Option<&str>) -> HashMap<String, Pod> {
    let state = started.map(|started| json!({"running": {"startedAt": started}}));
    let pod = json!({
        "metadata": {"name": "cni", "uid": "1", "resourceVersion": version.to_string()},
        "status": {
            "conditions": [
                {"type": "PodScheduled", "status": "True", "lastTransitionTime": "2026-03-01T12:01:00Z"},
                {"type": "Ready", "status": ready.0, "lastTransitionTime": ready.1},
            ],
            "containerStatuses": [
                {"name": "a", "state": state},
                {"name": "b", "state": {"waiting": {}, "running": null}},
            ],
        },
    });
    HashMap::from([("1".into(), serde_json::from_value(pod).unwrap())])
}

fn track(tracker: &mut Tracker, pods: &HashMap<String, Pod>, synced: bool) -> Outcome {
    let freshness = NodeFreshness {
        pods_synced: synced,
        ..NodeFreshness::default()
    };
    let stale = tracker.stale(pods, &freshness, Some(uptime()));
    judge_one(&expected(false), pods, &known(stale))
}

const BEFORE: Option<&str> = Some("2026-03-01T11:59:59Z");
const SINCE: Option<&str> = Some("2026-03-01T12:00:00Z");
const TO_COME: Option<&str> = Some("2026-03-01T20:00:00Z");

#[test]
fn a_ready_pod_counts_if_a_time_in_its_status_is_of_this_boot() {
    for (ready, started, counts) in [
        (BEFORE, BEFORE, false),
        (BEFORE, None, false),
        (None, BEFORE, false),
        (TO_COME, BEFORE, false),
        (SINCE, BEFORE, true),
        (BEFORE, SINCE, true),
        (SINCE, None, true),
        (None, None, true),
    ] {
        let ready_pod = pod(1, ("True", ready), started);
        let outcome = track(&mut Tracker::default(), &ready_pod, false);
        assert_eq!(outcome.is_open(), counts, "{ready:?} {started:?}");
        assert_eq!(outcome.is_unknown(), !counts, "{outcome:?}");
        let outcome = track(&mut Tracker::default(), &ready_pod, true);
        assert!(outcome.is_open(), "the kubelet has written every status");
        let unready = pod(1, ("False", ready), started);
        let outcome = track(&mut Tracker::default(), &unready, false);
        assert!(!outcome.is_open() && !outcome.is_unknown());
    }
    let outcome = track(
        &mut Tracker::default(),
        &pod(1, ("True", BEFORE), BEFORE),
        false,
    );
    let reason = "pod cni in kube-system is ready, but the newest time in its status is from \
                  2026-03-01T11:59:59Z, before the boot at 2026-03-01T12:00:00Z";
    assert_eq!(outcome, Outcome::Unknown(reason.into()));
}

#[test]
fn a_pod_whose_status_changes_counts_until_a_backup_replaces_it() {
    let mut tracker = Tracker::default();
    let earlier = Some("2026-03-01T11:00:00Z");
    let old = pod(5, ("True", BEFORE), BEFORE);
    assert!(track(&mut tracker, &old, false).is_unknown());
    let with_a_label = pod(6, ("True", BEFORE), BEFORE);
    assert!(track(&mut tracker, &with_a_label, false).is_unknown());
    let restarted = pod(7, ("True", BEFORE), earlier);
    assert!(track(&mut tracker, &restarted, false).is_open());
    assert!(track(&mut tracker, &restarted, false).is_open());
    assert!(track(&mut tracker, &old, false).is_unknown());
}

#[test]
fn one_fresh_ready_pod_is_enough_beside_stale_ones() {
    let mut pods = pod(1, ("True", BEFORE), BEFORE);
    let mut another = pod(1, ("True", SINCE), SINCE).remove("1").unwrap();
    another.metadata.uid = "2".into();
    pods.insert("2".into(), another);
    assert!(track(&mut Tracker::default(), &pods, false).is_open());
}
