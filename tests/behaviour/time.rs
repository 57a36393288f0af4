//! `stableFor`, the deadline, and a process that is paused.

use std::time::Duration;

use testkit::api::{Answer, Verb};

use crate::scene::{Gates, OnCluster, OnStandIn, TAINT};

#[tokio::test]
async fn a_gate_that_closes_while_a_removal_has_no_answer_starts_stable_for_again() {
    let scene = OnStandIn::with(&[TAINT], Gates::open().await).await;
    scene
        .gates
        .configure(&scene.gates.rule("  stableFor: 3s\n"));
    scene.server.respond_next(Verb::Patch, 1, Answer::Hang);
    let agent = scene.agent(&[]);
    scene.wait_for(Verb::Patch, 1).await;
    // A part of the five seconds for which the agent waits for the answer.
    scene.gates.health.wait_for_requests(50).await.unwrap();
    scene.gates.health.set(503);
    let is_closed = |line: &serde_json::Value| line["gate"] == "agent" && line["state"] == "closed";
    agent.wait_for_log(is_closed).await.unwrap();
    assert_eq!(scene.count(Verb::Patch), 1);
    let reopened = std::time::Instant::now();
    scene.gates.health.set(200);
    scene.wait_for_taints(&[]).await;
    let patches = scene.all(Verb::Patch);
    let waited = patches[1].at - reopened;
    assert!(waited >= Duration::from_secs(3), "{waited:?}");
}

#[tokio::test]
async fn at_its_deadline_a_taint_is_reported_and_kept_or_removed_as_the_rule_says() {
    for (name, action, left) in [
        ("deadline-keep", "Keep", &[TAINT][..]),
        ("deadline-remove", "Remove", &[]),
    ] {
        let Some(scene) = OnCluster::with(name, &[TAINT], Gates::closed().await).await else {
            return;
        };
        let deadline = format!("  deadline: {{after: 1s, action: {action}}}\n");
        scene.gates.configure(&scene.gates.rule(&deadline));
        let agent = scene.agent(&[]);
        let late = agent
            .wait_for_message("the taint has been there for too long")
            .await
            .unwrap();
        assert_eq!(
            (&late["level"], &late["action"]),
            (&"WARN".into(), &action.into())
        );
        assert!(
            late["waits_for"].as_str().unwrap().contains("conflist: "),
            "{late}"
        );
        scene.wait_for_taints(left).await;
    }
}

#[tokio::test]
async fn what_a_process_that_stood_still_has_seen_before_is_not_acted_on() {
    let scene = OnStandIn::with(&[TAINT], Gates::open().await).await;
    scene
        .gates
        .configure(&scene.gates.rule("  stableFor: 3s\n"));
    let agent = scene.agent(&[]);
    agent
        .wait_for_log(|line| line["decision"] == "stabilizing")
        .await
        .unwrap();
    agent.signal("STOP").await.unwrap();
    scene.gates.health.set(503);
    // This does not wait for something. The pause itself is tested. It is longer than stableFor.
    tokio::time::sleep(Duration::from_millis(5500)).await;
    agent.signal("CONT").await.unwrap();
    agent
        .wait_for_message("the process was paused; evaluating the gates again")
        .await
        .unwrap();
    let is_closed = |line: &serde_json::Value| line["gate"] == "agent" && line["state"] == "closed";
    agent.wait_for_log(is_closed).await.unwrap();
    assert_eq!(scene.count(Verb::Patch), 0);
    scene.gates.health.set(200);
    scene.wait_for_taints(&[]).await;
}
