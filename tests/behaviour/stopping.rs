//! Signals.

use std::time::Duration;

use testkit::agent::Agent;

use crate::scene::{Gates, OnCluster, OnStandIn, PROGRAM, TAINT};

#[tokio::test]
async fn sigterm_ends_it_with_0_within_a_second_and_leaves_the_taint_as_it_is() {
    let Some(scene) = OnCluster::with("stopped", &[TAINT], Gates::closed().await).await else {
        return;
    };
    let mut agent = scene.agent(&[]);
    agent.wait_for_message("saw the taint").await.unwrap();
    agent.signal("TERM").await.unwrap();
    assert_eq!(
        agent.ended(Duration::from_secs(1)).await.unwrap().code(),
        Some(0)
    );
    assert_eq!(scene.taints().await, [TAINT]);
}

#[tokio::test]
async fn an_agent_that_is_killed_at_any_time_and_started_again_converges() {
    let scene = OnStandIn::with(&[TAINT], Gates::open().await).await;
    scene
        .server
        .respond_next(testkit::api::Verb::Patch, 1, testkit::api::Answer::Hang);
    let mut agent = scene.agent(&[]);
    scene.wait_for(testkit::api::Verb::Patch, 1).await;
    agent.signal("KILL").await.unwrap();
    agent.ended(Duration::from_secs(5)).await.unwrap();
    let _agent = scene.agent(&[]);
    scene.wait_for_taints(&[]).await;
}

#[tokio::test]
async fn sigterm_ends_it_as_pid_1_too() {
    let gates = Gates::closed().await;
    let config = gates.config();
    // In its own PID namespace, as in a container. Its parent waits for it and ends with its exit code.
    let arguments = [
        "--pid",
        "--fork",
        "--kill-child",
        PROGRAM,
        "wait",
        "--config",
        config.to_str().unwrap(),
    ];
    let mut unshare = Agent::start(
        "unshare",
        &arguments,
        &[("PATH", "/usr/sbin:/usr/bin:/sbin:/bin")],
    )
    .unwrap();
    unshare
        .wait_for_log(|line| line["gate"] == "agent" && line["state"] != "unknown")
        .await
        .unwrap();
    unshare.signal_child("TERM").await.unwrap();
    assert_eq!(
        unshare.ended(Duration::from_secs(5)).await.unwrap().code(),
        Some(3)
    );
}

#[tokio::test]
async fn a_wait_that_is_stopped_before_its_gates_are_open_does_not_look_like_success() {
    let gates = Gates::closed().await;
    let config = gates.config();
    let arguments = ["wait", "--config", config.to_str().unwrap()];
    let mut agent = Agent::start(PROGRAM, &arguments, &[]).unwrap();
    agent
        .wait_for_log(|line| line["gate"] == "agent" && line["state"] != "unknown")
        .await
        .unwrap();
    agent.signal("INT").await.unwrap();
    assert_eq!(agent.exit_code().await.unwrap(), 3);
}
