//! Events on the Node.

mod reload;
mod trouble;

use std::pin::pin;

use futures_util::StreamExt as _;
use http::Request;
use kube::core::WatchEvent;
use serde_json::{Value, json};
use testkit::DEADLINE;
use testkit::cluster::Cluster;
use tokio::sync::OnceCell;
use tokio::time::timeout;

use crate::denial::keep_taint;
use crate::scene::{self, FOREIGN, Gates, OnCluster, TAINT};

const EVENTS: &str = "/apis/events.k8s.io/v1/namespaces/default/events";
pub(crate) const ON: &str = "events: true\n";
/// A rule that is ready at once.
pub(crate) const READY: &str = "- {name: ready, taint: {key: example.com/not-ready}, gates: []}\n";

/// See [`scene::grant`].
async fn grant(cluster: &Cluster) {
    let rules = READY.to_owned() + ON;
    scene::grant(
        cluster,
        &rules,
        ["patch", "events.events.k8s.io"],
        "default",
    )
    .await;
}

/// Grants the permission on the shared cluster.
pub(crate) async fn allow(scene: &OnCluster) {
    static GRANTED: OnceCell<()> = OnceCell::const_new();
    GRANTED.get_or_init(|| grant(scene.cluster)).await;
}

/// A Node whose agent may write Events and has these rules.
async fn scene(name: &'static str, taints: &[&str], rules: &str) -> Option<OnCluster> {
    let scene = OnCluster::with(name, taints, Gates::closed().await).await?;
    allow(&scene).await;
    scene.gates.configure(&format!("{rules}{ON}"));
    Some(scene)
}

/// The query for the Events about the Node, by its uid.
async fn about(cluster: &Cluster, node: &str) -> String {
    let node = cluster.node(node).await.unwrap();
    let uid = node["metadata"]["uid"].as_str().unwrap();
    format!("fieldSelector=regarding.uid%3D{uid}")
}

/// Waits for the Event about the Node with this reason and this count.
pub(crate) async fn wait_for_event(
    cluster: &Cluster,
    node: &str,
    reason: &str,
    count: u64,
) -> Value {
    let is_it = |event: &Value| event["reason"] == reason && self::count(event) == count;
    event(cluster, node, is_it).await
}

/// Waits for the first Event about the Node for which `wanted` is true.
async fn event(cluster: &Cluster, node: &str, wanted: impl Fn(&Value) -> bool) -> Value {
    // Without a version, the watch starts with the existing objects.
    let uri = format!("{EVENTS}?watch=true&{}", about(cluster, node).await);
    let request = Request::get(uri).body(Vec::new()).unwrap();
    let client = cluster.client().await.unwrap();
    let mut changes = pin!(client.request_events::<Value>(request).await.unwrap());
    let found = async {
        loop {
            match changes.next().await.unwrap().unwrap() {
                WatchEvent::Added(event) | WatchEvent::Modified(event) if wanted(&event) => {
                    return event;
                }
                _ => {}
            }
        }
    };
    timeout(DEADLINE, found).await.unwrap()
}

/// The taint and the rule in the note of a removal. The rest is the time.
pub(crate) fn removed_taint(note: &Value) -> String {
    let note = note.as_str().unwrap();
    let note = note.strip_prefix("Removed the taint ").unwrap();
    let end = note.find(')').unwrap();
    note[..=end].to_owned()
}

/// How often the Event has happened.
fn count(event: &Value) -> u64 {
    event["series"]["count"].as_u64().unwrap_or(1)
}

/// Reason and note of all Events about the Node.
async fn all(cluster: &Cluster, node: &str) -> Vec<(String, String)> {
    let uri = format!("{EVENTS}?{}", about(cluster, node).await);
    let list = cluster.kubectl(&["get", "--raw", &uri]).await.unwrap();
    let list: Value = serde_json::from_str(&list).unwrap();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let all = list["items"].as_array().unwrap().iter();
    let mut all: Vec<_> = all
        .map(|event| (text(&event["reason"]), text(&event["note"])))
        .collect();
    all.sort();
    all
}

#[tokio::test]
async fn a_removal_is_told_on_the_node_by_one_request_more() {
    let Some(scene) = scene("events-sent", &[FOREIGN, TAINT], READY).await else {
        return;
    };
    let _agent = scene.agent(&[]);
    scene.wait_for_taints(&[FOREIGN]).await;
    let event = wait_for_event(scene.cluster, scene.name, "TaintRemoved", 1).await;
    let node = scene.cluster.node(scene.name).await.unwrap();
    let regarding = json!({
        "apiVersion": "v1",
        "kind": "Node",
        "name": scene.name,
        "uid": node["metadata"]["uid"],
    });
    assert_eq!(event["regarding"], regarding);
    for (field, value) in [
        ("type", "Normal"),
        ("action", "RemoveTaint"),
        ("reportingController", "untaint"),
        ("reportingInstance", scene.name),
    ] {
        assert_eq!(event[field], value);
    }
    assert_eq!(
        removed_taint(&event["note"]),
        format!("{TAINT} (rule ready)")
    );
    let requests = scene.requests().await;
    let requests: Vec<_> = requests
        .iter()
        .map(|request| {
            (
                request.verb.as_str(),
                request.uri.split('?').next().unwrap(),
            )
        })
        .collect();
    let expected = [
        ("watch", "/api/v1/nodes"),
        ("patch", "/api/v1/nodes/events-sent"),
        ("create", EVENTS),
    ];
    assert_eq!(requests, expected);

    let describe = ["describe", "node", scene.name];
    let description = scene.cluster.kubectl(&describe).await.unwrap();
    let line = description
        .lines()
        .find(|line| line.contains("TaintRemoved"))
        .unwrap_or_else(|| panic!("{description}"));
    assert!(
        line.contains("untaint") && line.contains("rule ready"),
        "{line}"
    );
}

#[tokio::test]
async fn each_rule_has_events_of_its_own() {
    let two = "- {name: two, taint: {key: two}, gates: []}\n";
    let rules = format!("{READY}{two}");
    let Some(scene) = scene("events-two-rules", &[TAINT, "two:NoSchedule"], &rules).await else {
        return;
    };
    let mut agent = scene.agent(&["--once", "--settle", "0s"]);
    assert_eq!(agent.exit_code().await.unwrap(), 0);
    let all = all(scene.cluster, scene.name).await;
    let all: Vec<_> = all
        .into_iter()
        .map(|(reason, note)| (reason, removed_taint(&note.into())))
        .collect();
    let removed = |taint: &str| ("TaintRemoved".to_owned(), taint.to_owned());
    assert_eq!(
        all,
        [
            removed(&format!("{TAINT} (rule ready)")),
            removed("two:NoSchedule (rule two)")
        ]
    );
}

#[tokio::test]
async fn a_taint_that_keeps_coming_back_is_one_event_that_counts_and_no_endless_stream_of_requests()
{
    let Some(scene) = scene("events-counted", &[TAINT], READY).await else {
        return;
    };
    let agent = scene.agent(&[]);
    for _ in 0..5 {
        scene.wait_for_taints(&[]).await;
        scene.set_taints(&[TAINT]).await;
    }
    let fight = wait_for_event(scene.cluster, scene.name, "TaintKeepsComingBack", 1).await;
    assert_eq!(fight["type"], "Warning");
    let removed = wait_for_event(scene.cluster, scene.name, "TaintRemoved", 5).await;
    assert!(
        removed["series"]["lastObservedTime"].is_string(),
        "{removed}"
    );
    // The sixth removal is over the limit of Events.
    let too_many = "dropped an Event: too many of its kind";
    agent.wait_for_message(too_many).await.unwrap();
    assert_eq!(agent.count("removed the taint"), 6);
    let requests = scene.requests().await;
    let count = |verb: &str| {
        let events = requests.iter().filter(|it| it.uri.starts_with(EVENTS));
        events.filter(|it| it.verb == verb).count()
    };
    assert_eq!((count("create"), count("patch")), (2, 4), "{requests:#?}");
}

#[tokio::test]
async fn a_taint_that_somebody_else_removes_too_early_has_an_event() {
    let gates = "- name: early\n  taint: {key: example.com/not-ready}\n  \
        gates: [{name: file, file: {path: /nonexistent}}]\n";
    let Some(scene) = scene("events-early", &[TAINT], gates).await else {
        return;
    };
    let agent = scene.agent(&[]);
    agent.wait_for_message("saw the taint").await.unwrap();
    scene.set_taints(&[]).await;
    let event = wait_for_event(scene.cluster, scene.name, "TaintRemovedByOther", 1).await;
    assert_eq!(event["type"], "Warning");
    assert_eq!(
        event["note"],
        "Another program removed the taint example.com/not-ready before rule early was ready"
    );
}

#[tokio::test]
async fn a_long_wait_and_the_deadline_have_events_with_the_reason() {
    for (name, action, then) in [
        ("events-keep", "Keep", "it stays until every gate is open"),
        ("events-remove", "Remove", "untaint removes it anyway"),
    ] {
        let rule = format!(
            "- name: late\n  taint: {{key: example.com/not-ready}}\n  \
             deadline: {{after: 3s, action: {action}}}\n  \
             gates: [{{name: file, file: {{path: /nonexistent}}}}]\n"
        );
        let Some(scene) = scene(name, &[TAINT], &rule).await else {
            return;
        };
        let _agent = scene.agent(&[]);
        let reason = "file: /nonexistent: does not exist";
        let wait = wait_for_event(scene.cluster, name, "RemovalWaiting", 1).await;
        assert_eq!(wait["type"], "Normal");
        let note = format!("The taint example.com/not-ready is still there (rule late): {reason}");
        assert_eq!(wait["note"], note);
        assert_eq!(
            scene.taints().await,
            [TAINT],
            "the wait is reported before the deadline"
        );
        let late = wait_for_event(scene.cluster, name, "DeadlineExceeded", 1).await;
        assert_eq!(late["type"], "Warning");
        let note = format!(
            "The taint example.com/not-ready has been there for 3 s; {then} (rule late): {reason}"
        );
        assert_eq!(late["note"], note);
        if action == "Remove" {
            wait_for_event(scene.cluster, name, "TaintRemoved", 1).await;
        }
    }
}

#[tokio::test]
async fn a_removal_that_a_policy_denies_has_an_event_with_its_message() {
    let rule = "- {name: kept, taint: {key: kept}, gates: []}\n";
    let Some(scene) = scene("events-kept", &["kept:NoSchedule", TAINT], rule).await else {
        return;
    };
    let _policy = keep_taint(&scene, "kept").await;
    let _agent = scene.agent(&[]);
    let event = wait_for_event(scene.cluster, scene.name, "RemovalDenied", 1).await;
    assert_eq!(event["type"], "Warning");
    let note = event["note"].as_str().unwrap();
    let beginning = "The server refused to remove the taint kept:NoSchedule (rule kept): ";
    assert!(note.starts_with(beginning), "{note}");
    assert!(note.contains("the taint kept must stay"), "{note}");
}

#[tokio::test]
async fn an_event_that_was_deleted_meanwhile_is_made_anew() {
    let Some(scene) = scene("events-anew", &[TAINT], READY).await else {
        return;
    };
    let _agent = scene.agent(&[]);
    let first = wait_for_event(scene.cluster, scene.name, "TaintRemoved", 1).await;
    let name = |event: &Value| event["metadata"]["name"].as_str().unwrap().to_owned();
    let delete = ["delete", "event", "--namespace=default", &name(&first)];
    scene.cluster.kubectl(&delete).await.unwrap();
    scene.set_taints(&[TAINT]).await;
    let second = wait_for_event(scene.cluster, scene.name, "TaintRemoved", 1).await;
    assert_ne!(name(&first), name(&second));
}
