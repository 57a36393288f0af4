use std::time::{Duration, Instant};

use jiff::Timestamp;
use serde_json::{Value, json};

use super::super::tracker::StalePods;
use super::*;
use crate::gate::State;
use crate::taint::TaintMatcher;

mod departures;
mod groups;
mod own_pod;

/// A pod as its DaemonSet has created it: of the DaemonSet, with a toleration for everything, ready.
fn pod(set: &str, name: &str) -> Value {
    json!({
        "metadata": {
            "name": name,
            "uid": name,
            "resourceVersion": "1",
            "creationTimestamp": "2026-01-01T00:00:01Z",
            "labels": {"controller-revision-hash": "1"},
            "ownerReferences": [{
                "apiVersion": "apps/v1",
                "kind": "DaemonSet",
                "name": set,
                "uid": set,
                "controller": true,
            }],
        },
        "spec": {"tolerations": [{"operator": "Exists"}]},
        "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]},
    })
}

/// The pod with another value at this place.
fn with(mut pod: Value, place: &str, value: Value) -> Value {
    let (parent, field) = place.rsplit_once('/').unwrap();
    pod.pointer_mut(parent).unwrap()[field] = value;
    pod
}

fn unready(pod: Value) -> Value {
    with(pod, "/status/conditions/0/status", json!("False"))
}

fn terminating(pod: Value) -> Value {
    with(
        pod,
        "/metadata/deletionTimestamp",
        json!("2026-01-01T00:01:00Z"),
    )
}

fn ended(pod: Value, phase: &str) -> Value {
    with(unready(pod), "/status/phase", json!(phase))
}

/// Of another revision, created later.
fn newer(pod: Value) -> Value {
    let labels = json!({"controller-revision-hash": "2"});
    let pod = with(pod, "/metadata/labels", labels);
    with(
        pod,
        "/metadata/creationTimestamp",
        json!("2026-01-01T00:00:02Z"),
    )
}

fn intolerant(pod: Value) -> Value {
    with(
        pod,
        "/spec/tolerations",
        json!([{"key": "other", "operator": "Exists"}]),
    )
}

fn gate(every: bool, daemon_sets: &[&str]) -> config::Pods {
    config::Pods {
        namespace: "kube-system".into(),
        match_labels: BTreeMap::new(),
        every,
        daemon_sets: daemon_sets.iter().map(ToString::to_string).collect(),
        newest_revision: false,
    }
}

fn taint(text: &str) -> TaintMatcher {
    crate::taint::parse_taint(text).unwrap()
}

/// The status of pods whose names begin with `stale` is from before the boot. The pod `own` waits for this program.
fn outcome(gate: &config::Pods, pods: &[Value]) -> Outcome {
    let now = (Instant::now(), Timestamp::now());
    judgement(gate, pods, now, &mut Departures::default()).outcome
}

fn judgement(
    gate: &config::Pods,
    pods: &[Value],
    (now, clock): (Instant, Timestamp),
    departures: &mut Departures,
) -> Judgement {
    let pods: Vec<Pod> = pods
        .iter()
        .map(|pod| serde_json::from_value(pod.clone()).unwrap())
        .collect();
    let stale = pods.iter().map(|pod| pod.metadata.name.clone());
    let stale = stale.filter(|name| name.starts_with("stale"));
    let stale: StalePods = stale.map(|name| (name, "from 1970".into())).collect();
    let by_uid = |pod: Pod| (pod.metadata.uid.clone(), pod);
    let known = Known {
        stale,
        taints: &[taint("example.com/a:NoSchedule")],
        waiting_pod: Some("own"),
        now,
        clock,
    };
    let pods = pods.into_iter().map(by_uid).collect();
    judge(gate, &pods, &known, departures)
}

const OPEN: &str = "DaemonSets in kube-system are ready on this node";
const CLOSED: &str = "DaemonSets in kube-system are not ready on this node";
const UNKNOWN: &str = "DaemonSets in kube-system are not known to be ready on this node";
const NONE: &str = "no DaemonSet in kube-system has a pod on this node";

fn open(words: &str) -> Outcome {
    Outcome::Open(words.into())
}

fn closed(words: &str) -> Outcome {
    Outcome::Closed(words.into())
}

/// zalando kubernetes-on-aws#1151, nodetaint#17 (D24).
#[test]
fn every_daemon_set_with_a_pod_here_must_be_ready_and_there_must_be_one() {
    let a = || pod("a", "a-1");
    let b = || pod("b", "b-1");
    let no_owner = with(
        unready(pod("x", "x-1")),
        "/metadata/ownerReferences",
        json!(null),
    );
    let owner = |kind: &str, controller: bool| {
        let owner = json!([{"apiVersion": "v1", "kind": kind, "name": "x", "uid": "x", "controller": controller}]);
        with(unready(pod("x", "x-1")), "/metadata/ownerReferences", owner)
    };
    for (pods, expected) in [
        (vec![], closed(NONE)),
        // These are of no DaemonSet. A static pod is of its Node.
        (vec![no_owner.clone()], closed(NONE)),
        (vec![owner("Node", true)], closed(NONE)),
        (vec![owner("ReplicaSet", true)], closed(NONE)),
        (vec![owner("DaemonSet", false)], closed(NONE)),
        (
            vec![a(), no_owner, owner("Node", true)],
            open(&format!("1 of 1 {OPEN}")),
        ),
        (vec![a(), b()], open(&format!("2 of 2 {OPEN}"))),
        (
            vec![a(), unready(b())],
            closed(&format!("1 of 2 {CLOSED}: pod b-1 is not ready")),
        ),
        (
            vec![unready(a()), terminating(b()), pod("c", "c-1")],
            closed(&format!(
                "2 of 3 {CLOSED}: pod a-1 is not ready, pod b-1 is terminating"
            )),
        ),
        (
            vec![a(), pod("b", "stale-1")],
            Outcome::Unknown(format!(
                "1 of 2 {UNKNOWN}: pod stale-1 is ready, but the newest time in its status is from 1970"
            )),
        ),
        (
            vec![unready(a()), pod("b", "stale-1")],
            closed(&format!("1 of 2 {CLOSED}: pod a-1 is not ready")),
        ),
    ] {
        assert_eq!(outcome(&gate(true, &[]), &pods), expected, "{pods:#?}");
    }
}

#[test]
fn of_a_daemon_set_only_pods_count_that_stay_and_are_of_the_newest_revision() {
    let is_ready = || open(&format!("1 of 1 {OPEN}"));
    let not = |what: &str| closed(&format!("1 of 1 {CLOSED}: pod {what}"));
    let [a, b] = ["a-1", "a-2"].map(|name| pod("a", name));
    for (pods, expected) in [
        (vec![terminating(a.clone())], not("a-1 is terminating")),
        (vec![ended(a.clone(), "Failed")], not("a-1 has ended")),
        (vec![ended(a.clone(), "Succeeded")], not("a-1 has ended")),
        // It has been replaced.
        (vec![terminating(unready(a.clone())), b.clone()], is_ready()),
        (vec![ended(a.clone(), "Failed"), b.clone()], is_ready()),
        // Both run until the newer one is ready (`maxSurge`).
        (
            vec![a.clone(), newer(unready(b.clone()))],
            not("a-2 is not ready"),
        ),
        (vec![unready(a.clone()), newer(b.clone())], is_ready()),
        (
            vec![a.clone(), newer(terminating(b.clone()))],
            not("a-2 is terminating"),
        ),
        (
            vec![a.clone(), newer(ended(b.clone(), "Failed"))],
            not("a-2 has ended"),
        ),
        // Both are of the newest revision.
        (vec![a.clone(), unready(b.clone())], not("a-2 is not ready")),
    ] {
        for gate in [gate(true, &[]), gate(false, &["a"])] {
            assert_eq!(outcome(&gate, &pods), expected, "{gate:?} {pods:#?}");
        }
    }
}

#[test]
fn each_named_daemon_set_must_be_ready_and_others_only_with_every() {
    const HINT: &str = "; a DaemonSet has a pod here only if it exists, selects this node and tolerates example.com/a:NoSchedule";
    let (a, b) = (|| pod("a", "a-1"), || pod("b", "b-1"));
    for (every, named, pods, expected) in [
        (
            false,
            &["a"][..],
            vec![a(), unready(b())],
            open(&format!("1 of 1 {OPEN}")),
        ),
        (
            true,
            &["a"],
            vec![a(), unready(b())],
            closed(&format!("1 of 2 {CLOSED}: pod b-1 is not ready")),
        ),
        (
            false,
            &["a", "b"],
            vec![a(), b()],
            open(&format!("2 of 2 {OPEN}")),
        ),
        (
            false,
            &["b", "a", "a"],
            vec![a(), b()],
            open(&format!("2 of 2 {OPEN}")),
        ),
        (
            false,
            &["a", "b"],
            vec![a()],
            closed(&format!("1 of 2 {CLOSED}: b has no pod{HINT}")),
        ),
        (
            true,
            &["c"],
            vec![a(), unready(b())],
            closed(&format!(
                "2 of 3 {CLOSED}: pod b-1 is not ready, c has no pod{HINT}"
            )),
        ),
        (
            false,
            &["a"],
            vec![],
            closed(&format!("1 of 1 {CLOSED}: a has no pod{HINT}")),
        ),
    ] {
        assert_eq!(
            outcome(&gate(every, named), &pods),
            expected,
            "{every} {named:?} {pods:#?}"
        );
    }
}

/// Such a pod is never created while the taint is there.
#[test]
fn a_daemon_set_that_waits_for_the_taint_to_go_is_not_waited_for_and_is_told() {
    let (a, late) = (|| pod("a", "a-1"), || intolerant(pod("late", "late-1")));
    let left = "not waited for: pod late-1 does not tolerate example.com/a:NoSchedule";
    for pods in [
        vec![a(), late()],
        vec![a(), unready(late())],
        vec![a(), terminating(late())],
        vec![a(), ended(late(), "Failed")],
    ] {
        let expected = open(&format!("1 of 1 {OPEN}; {left}"));
        assert_eq!(outcome(&gate(true, &[]), &pods), expected, "{pods:#?}");
    }
    let alone = outcome(&gate(true, &[]), &[late()]);
    assert_eq!(alone, closed(&format!("{NONE}; {left}")));
    // By its name, it is waited for.
    let named = |pod| outcome(&gate(false, &["late"]), &[pod]);
    assert_eq!(named(late()), open(&format!("1 of 1 {OPEN}")));
    let expected = closed(&format!(
        "1 of 1 {CLOSED}: pod late-1 is terminating and does not tolerate example.com/a:NoSchedule"
    ));
    assert_eq!(named(terminating(late())), expected);
}

#[test]
fn a_message_describes_some_of_many_and_counts_the_rest() {
    let name = |n: usize| format!("{}-{n:03}", "long-name-".repeat(24));
    let pods: Vec<_> = (0..200)
        .map(|n| unready(pod(&n.to_string(), &name(n))))
        .collect();
    let message = outcome(&gate(true, &[]), &pods).message().to_owned();
    assert!(
        message.starts_with(&format!("200 of 200 {CLOSED}: pod long-name-")),
        "{message}"
    );
    assert!(message.ends_with(", and 195 more"), "{message}");
    assert!(message.chars().count() < 600, "{message}");
}

#[test]
fn the_reason_says_that_the_labels_may_be_wrong() {
    let labels = BTreeMap::from([("tier".to_owned(), "node".to_owned())]);
    let gate = config::Pods {
        match_labels: labels,
        ..gate(true, &[])
    };
    let reason = "no DaemonSet in kube-system has a pod with the labels on this node";
    assert_eq!(outcome(&gate, &[]), closed(reason));
}
