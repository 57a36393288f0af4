//! A Node without the taint, and a taint that is added, removed and added again.

use serde_json::json;
use testkit::api::Verb;
use testkit::taints;

use crate::scene::{FOREIGN, Gates, OnCluster, OnStandIn, TAINT};

#[tokio::test]
async fn without_the_taint_gates_rest_until_it_is_seen_again() {
    let scene = OnStandIn::with(&[FOREIGN], Gates::open().await).await;
    let agent = scene.agent(&[]);
    scene.wait_for(Verb::Watch, 1).await;
    // The gates may run until the Node has been seen for the first time.
    agent
        .wait_for_log(|line| line["decision"] == "absent")
        .await
        .unwrap();
    // The request of the test is counted after all earlier requests.
    let endpoint = format!("127.0.0.1:{}", scene.gates.health.port());
    testkit::agent::get(&endpoint, "/").await.unwrap();
    let probed = scene.gates.health.requests();
    scene.server.update_node("node", |node| {
        node["metadata"]["labels"] = json!({"a": "b"});
    });
    agent
        .wait_for_log(|line| line["message"] == "saw the Node" && line["resource_version"] == 2)
        .await
        .unwrap();
    // The next watch starts at least a quarter of a second later. The gate's period is a fifth of that.
    scene.server.end_watches();
    agent.wait_for_count("watching the Node", 2).await.unwrap();
    assert_eq!(
        scene.gates.health.requests(),
        probed,
        "an absent taint is nothing to probe for"
    );
    assert_eq!(scene.count(Verb::Patch), 0);

    scene.set_taints(&[FOREIGN, TAINT]);
    scene.wait_for_taints(&[FOREIGN]).await;
    assert!(scene.gates.health.requests() > probed);
    assert_eq!(scene.verbs(), [Verb::Watch, Verb::Watch, Verb::Patch]);
}

#[tokio::test]
async fn a_taint_that_comes_back_has_its_gates_evaluated_afresh_and_is_removed_again() {
    let Some(scene) = OnCluster::with("comes-back", &[TAINT], Gates::open().await).await else {
        return;
    };
    let agent = scene.agent(&[]);
    scene.wait_for_taints(&[]).await;
    scene.gates.health.set(503);
    scene.set_taints(&[TAINT, FOREIGN]).await;
    let closed = |line: &serde_json::Value| line["gate"] == "agent" && line["state"] == "closed";
    agent.wait_for_log(closed).await.unwrap();
    scene.gates.health.wait_for_requests(3).await.unwrap();
    assert_eq!(
        scene.taints().await,
        [TAINT, FOREIGN],
        "a gate that was open once is no evidence now"
    );
    scene.gates.health.set(200);
    scene.wait_for_taints(&[FOREIGN]).await;
}

#[tokio::test]
async fn a_taint_that_keeps_coming_back_is_removed_ever_again_but_not_at_full_speed_and_with_a_warning()
 {
    let scene = OnStandIn::with(&[TAINT], Gates::open().await).await;
    scene
        .gates
        .configure("- {name: fight, taint: {key: example.com/not-ready}, gates: []}\n");
    let agent = scene.agent(&[]);
    for _ in 0..5 {
        scene.wait_for_taints(&[]).await;
        scene.set_taints(&[TAINT]);
    }
    let fight = agent
        .wait_for_message("another program keeps putting the taint back; removing it less often")
        .await
        .unwrap();
    assert_eq!(fight["level"], "WARN");
    assert_eq!(scene.count(Verb::Patch), 5);
    scene.wait_for_taints(&[]).await;
    let patches = scene.all(Verb::Patch);
    assert!(
        patches[5].at - patches[4].at >= std::time::Duration::from_secs(9),
        "the sixth waited for its turn"
    );
}

#[tokio::test]
async fn a_taint_that_somebody_else_removes_while_a_gate_is_closed_is_told_once() {
    let Some(scene) = OnCluster::with("other-remover", &[TAINT], Gates::closed().await).await
    else {
        return;
    };
    let agent = scene.agent(&[]);
    agent.wait_for_message("saw the taint").await.unwrap();
    agent
        .wait_for_log(|line| line["gate"] == "conflist" && line["state"] != "unknown")
        .await
        .unwrap();
    scene.set_taints(&[FOREIGN]).await;
    let message = "another program removed the taint before the rule was ready";
    let line = agent.wait_for_message(message).await.unwrap();
    assert_eq!(
        (&line["level"], &line["rule"]),
        (&"WARN".into(), &"cni".into())
    );
    scene.set_taints(&[FOREIGN, TAINT]).await;
    scene.gates.open_both();
    scene.wait_for_taints(&[FOREIGN]).await;
    agent.wait_for_message("removed the taint").await.unwrap();
    assert_eq!(agent.count(message), 1);
}

#[tokio::test]
async fn a_taint_that_vanishes_between_read_and_patch_is_no_failure() {
    let scene = OnStandIn::with(&[TAINT], Gates::closed().await).await;
    let agent = scene.agent(&[]);
    agent.wait_for_message("saw the taint").await.unwrap();
    scene.server.pause_watches(true);
    scene.set_taints(&[FOREIGN]);
    scene.gates.open_both();
    scene.wait_for(Verb::Get, 1).await;
    agent
        .wait_for_message("another program removed the taint after the rule was ready")
        .await
        .unwrap();
    assert_eq!(scene.verbs(), [Verb::Watch, Verb::Patch, Verb::Get]);
    assert_eq!(taints(&scene.server.node("node").unwrap()), [FOREIGN]);
}

#[tokio::test]
async fn a_node_selector_that_does_not_select_the_node_leaves_the_taint() {
    let Some(scene) = OnCluster::with("selector", &[TAINT], Gates::open().await).await else {
        return;
    };
    scene
        .gates
        .configure(&scene.gates.rule("  nodeSelector: {pool: gpu}\n"));
    let agent = scene.agent(&[]);
    agent
        .wait_for_log(|line| line["decision"] == "not-selected")
        .await
        .unwrap();
    assert_eq!(scene.taints().await, [TAINT]);
    scene
        .cluster
        .patch_node(
            scene.name,
            &json!({"metadata": {"labels": {"pool": "gpu"}}}),
        )
        .await
        .unwrap();
    scene.wait_for_taints(&[]).await;
}
