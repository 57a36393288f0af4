//! `publishCondition`: the state of the gates as a condition of the Node.

use std::time::Duration;

use serde_json::{Value, json};
use testkit::api::{Answer, Verb};
use testkit::cluster;

use crate::metrics::LISTEN;
use crate::scene::{FOREIGN, Gates, OnCluster, OnStandIn, TAINT, grant};

/// A rule that publishes a condition.
pub(crate) const RULE: &str =
    "- {name: a, taint: {key: a}, gates: [], publishCondition: {type: a}}\n";
pub(crate) const ALLOWS: [&str; 2] = ["patch", "nodes/status"];
pub(crate) const FAILED: &str = "failed to publish a condition; trying again";
const KIND: &str = "readiness.k8s.io/NetworkReady";

async fn gates() -> Gates {
    let gates = Gates::closed().await;
    gates.write_conflist();
    gates.configure(&publishing(&gates, KIND));
    gates
}

/// The rule of [`Gates::rule`], with a condition of this type.
pub(crate) fn publishing(gates: &Gates, kind: &str) -> String {
    gates.rule(&format!("  publishCondition: {{type: {kind}}}\n"))
}

fn condition<'a>(node: &'a Value, kind: &str) -> &'a Value {
    let conditions = node["status"]["conditions"].as_array();
    let mut conditions = conditions.into_iter().flatten();
    let found = conditions.find(|condition| condition["type"] == kind);
    found.unwrap_or(&Value::Null)
}

/// Status and reason.
fn said(node: &Value) -> [&Value; 2] {
    let condition = condition(node, KIND);
    [&condition["status"], &condition["reason"]]
}

async fn wait_for(scene: &OnCluster, wanted: [&str; 2]) -> Value {
    let is_said = |node: &Value| said(node) == wanted;
    let node = scene.cluster.wait_for_node(scene.name, is_said).await;
    node.unwrap()
}

/// The number of writes of the status.
async fn writes(scene: &OnCluster) -> usize {
    let requests = scene.requests().await;
    let is_write = |uri: &str| uri.split('?').next().unwrap().ends_with("/status");
    requests
        .iter()
        .filter(|request| is_write(&request.uri))
        .count()
}

#[tokio::test]
async fn the_condition_follows_the_gates_before_and_after_the_removal_and_no_other_is_touched() {
    let Some(scene) = OnCluster::with("published", &[TAINT, FOREIGN], gates().await).await else {
        return;
    };
    grant(scene.cluster, RULE, ALLOWS, "default").await;
    let ready = json!([{"type": "Ready", "status": "True", "reason": "KubeletReady"}]).to_string();
    let patch = format!(r#"{{"status": {{"conditions": {ready}}}}}"#);
    let by_kubelet = [
        "patch",
        "node",
        scene.name,
        "--subresource=status",
        "--patch",
        &patch,
    ];
    scene.cluster.kubectl(&by_kubelet).await.unwrap();

    let agent = scene.agent(&[]);
    let node = wait_for(&scene, ["False", "GatesClosed"]).await;
    let closed = condition(&node, KIND).clone();
    let message = closed["message"].as_str().unwrap();
    assert!(message.starts_with("agent: "), "{message}");
    assert!(message.contains("503 Service Unavailable"), "{message}");
    scene.gates.health.set(200);
    let node = wait_for(&scene, ["True", "GatesOpen"]).await;
    assert_eq!(condition(&node, "Ready")["reason"], "KubeletReady");
    assert_ne!(condition(&node, KIND)["lastTransitionTime"], Value::Null);
    scene.wait_for_taints(&[FOREIGN]).await;
    let wait = format!("--for=condition={KIND}");
    let node = format!("node/{}", scene.name);
    scene
        .cluster
        .kubectl(&["wait", &node, &wait])
        .await
        .unwrap();

    scene.gates.health.set(503);
    wait_for(&scene, ["False", "GatesClosed"]).await;
    assert_eq!(scene.taints().await, [FOREIGN], "a condition is no retaint");
    assert_eq!(writes(&scene).await, 3);

    // Another agent finds the condition on the Node, and writes only what is new.
    drop(agent);
    let agent = scene.agent(&[]);
    let is_closed = |line: &Value| line["gate"] == "agent" && line["state"] == "closed";
    agent.wait_for_log(is_closed).await.unwrap();
    scene.gates.health.set(200);
    wait_for(&scene, ["True", "GatesOpen"]).await;
    assert_eq!(writes(&scene).await, 4);
}

#[tokio::test]
async fn without_the_permission_the_removal_goes_on_and_the_condition_follows_the_grant() {
    let Some(cluster) = cluster::fresh(&[]).await else {
        return;
    };
    let gates = gates().await;
    let kubeconfig = gates.tainted_node(&cluster, "node", &[TAINT]).await;
    let agent = gates.agent("node", &kubeconfig, &LISTEN);
    let failed = agent.wait_for_message(FAILED).await.unwrap();
    let error = failed["error"].as_str().unwrap();
    assert!(
        error.contains(r#"cannot patch resource "nodes/status""#),
        "{error}"
    );
    let status = agent.status().await.unwrap();
    assert_eq!(status["rules"][0]["publishFailure"], error, "{status:#}");
    gates.health.set(200);
    agent.wait_for_message("removed the taint").await.unwrap();
    grant(&cluster, RULE, ALLOWS, "default").await;
    let is_true = |node: &Value| said(node) == ["True", "GatesOpen"];
    cluster.wait_for_node("node", is_true).await.unwrap();
    assert_eq!(agent.count(FAILED), 1);
    let again = "conditions can be published again";
    agent.wait_for_message(again).await.unwrap();
    let status = agent.status().await.unwrap();
    assert_eq!(status["rules"][0]["publishFailure"], Value::Null);
}

#[tokio::test]
async fn a_gate_that_flaps_does_not_fill_the_server_with_conditions_and_its_last_state_is_told() {
    let Some(scene) = OnCluster::with("published-flaps", &[], gates().await).await else {
        return;
    };
    grant(scene.cluster, RULE, ALLOWS, "default").await;
    let mut agent = scene.agent(&[]);
    for _ in 0..20 {
        for (status, state) in [(200, "open"), (503, "closed")] {
            let is_it = |line: &&Value| line["gate"] == "agent" && line["state"] == state;
            let before = agent.logs().iter().filter(is_it).count();
            scene.gates.health.set(status);
            while agent.logs().iter().filter(is_it).count() == before {
                agent.next_log().await.unwrap();
            }
        }
    }
    let written = writes(&scene).await;
    assert!((1..=6).contains(&written), "{written}");
    // The Node cannot have this message.
    let node = scene.cluster.node(scene.name).await.unwrap();
    let (status, last) = match said(&node)[0].as_str() {
        Some("True") => (503, ["False", "GatesClosed"]),
        _ => (200, ["True", "GatesOpen"]),
    };
    scene.gates.health.set(status);
    wait_for(&scene, last).await;
}

#[tokio::test]
async fn a_condition_without_an_answer_does_not_cost_the_removals_their_connection() {
    let scene = OnStandIn::with(&[FOREIGN, TAINT], gates().await).await;
    scene
        .server
        .respond_next(Verb::Other, usize::MAX, Answer::Hang);
    let agent = scene.agent(&[]);
    agent.wait_for_message(FAILED).await.unwrap();
    scene.gates.health.set(200);
    scene.wait_for_taints(&[FOREIGN]).await;
    let patches = scene.all(Verb::Patch);
    assert_eq!(
        patches[0].connection, 0,
        "the removal began with a handshake"
    );
}

/// Retry-After applies to the whole client, not to one rule.
#[tokio::test]
async fn a_server_that_asks_to_be_left_alone_gets_no_condition_of_any_rule_before_it_is_time() {
    let scene = OnStandIn::with(&[FOREIGN], Gates::closed().await).await;
    let rule = |name: &str| {
        format!(
            "- {{name: {name}, taint: {{key: {name}}}, publishCondition: {{type: {name}}}, gates: []}}\n"
        )
    };
    scene.gates.configure(&(rule("one") + &rule("two")));
    let busy = Answer::too_many_requests(3);
    scene.server.respond_next(Verb::Other, usize::MAX, busy);
    let _agent = scene.agent(&[]);
    scene.wait_for(Verb::Other, 2).await;
    let sent = scene.all(Verb::Other);
    assert!(sent[1].at - sent[0].at >= Duration::from_secs(3));
}

/// The agent depends on this when the Node is deleted and recreated between its read and its write.
#[tokio::test]
async fn the_server_refuses_a_status_for_a_node_with_another_uid() {
    let Some(cluster) = cluster::shared().await else {
        return;
    };
    cluster.create_node("published-uid", &[]).await.unwrap();
    let patch = json!({"metadata": {"uid": "another"}, "status": {"conditions": [{"type": KIND, "status": "True"}]}});
    let patch = patch.to_string();
    let refused = [
        "patch",
        "node",
        "published-uid",
        "--subresource=status",
        "--patch",
        &patch,
    ];
    let error = cluster.kubectl(&refused).await.unwrap_err().to_string();
    assert!(error.contains("uid"), "{error}");
    let node = cluster.node("published-uid").await.unwrap();
    assert_eq!(*condition(&node, KIND), Value::Null);
}
