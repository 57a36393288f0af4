//! `stableFor`, the deadline, and a process that is paused.

use std::time::Duration;

use testkit::agent::Agent;
use testkit::api::{Answer, Verb};

use crate::scene::{Gates, OnCluster, OnStandIn, PROGRAM, TAINT};

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

/// An agent whose gates are open, but not for the `stableFor` of 3 s yet.
async fn stabilizing() -> (OnStandIn, Agent) {
    let scene = OnStandIn::with(&[TAINT], Gates::open().await).await;
    scene
        .gates
        .configure(&scene.gates.rule("  stableFor: 3s\n"));
    let agent = scene.agent(&[]);
    agent
        .wait_for_log(|line| line["decision"] == "stabilizing")
        .await
        .unwrap();
    (scene, agent)
}

/// Stops the process for so many milliseconds, in which `change` happens. This does not wait for something: the pause itself
/// is tested.
async fn stand_still(agent: &Agent, millis: u64, change: impl FnOnce()) {
    agent.signal("STOP").await.unwrap();
    change();
    tokio::time::sleep(Duration::from_millis(millis)).await;
    agent.signal("CONT").await.unwrap();
}

#[tokio::test]
async fn what_a_process_that_stood_still_has_seen_before_is_not_acted_on() {
    let (scene, agent) = stabilizing().await;
    stand_still(&agent, 5500, || {
        scene.gates.health.set(503);
    })
    .await;
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

#[tokio::test]
async fn a_gate_that_opens_after_a_pause_does_not_join_what_another_found_before_it() {
    let gates = Gates::closed().await;
    gates.health.set(200);
    let rule = gates
        .rule("")
        .replace("periodSeconds: 0.05", "periodSeconds: 3600");
    gates.configure(&rule);
    let scene = OnStandIn::with(&[TAINT], gates).await;
    let agent = scene.agent(&[]);
    let is = |line: &serde_json::Value, state| line["gate"] == "agent" && line["state"] == state;
    agent.wait_for_log(|line| is(line, "open")).await.unwrap();
    stand_still(&agent, 3500, || {
        scene.gates.open_both();
        scene.gates.health.set(503);
    })
    .await;
    agent.wait_for_log(|line| is(line, "closed")).await.unwrap();
    assert_eq!(scene.count(Verb::Patch), 0);
}

/// kubernetes#113081, and what a node without processor time to spare does to its agents.
#[tokio::test]
async fn a_process_that_is_starved_again_and_again_still_removes_the_taint_and_does_not_fill_the_log()
 {
    let (scene, agent) = stabilizing().await;
    for pauses in 0.. {
        assert!(pauses < 20, "never removed");
        stand_still(&agent, 2500, || {}).await;
        tokio::time::sleep(Duration::from_millis(300)).await;
        if scene.count(Verb::Patch) > 0 {
            break;
        }
    }
    scene.wait_for_taints(&[]).await;
    let warnings = |line: &serde_json::Value| line["message"].as_str().unwrap().contains("paused");
    let warnings = agent.logs().into_iter().filter(warnings).count();
    assert!(
        (2..=3).contains(&warnings),
        "{warnings}: one for the first pause, one for the others, and perhaps one of a busy machine"
    );
}

#[tokio::test]
async fn a_wait_that_stood_still_starts_stable_for_again() {
    let gates = Gates::open().await;
    gates.configure(&gates.rule("  stableFor: 3s\n"));
    let config = gates.config();
    let arguments = ["wait", "--config", config.to_str().unwrap()];
    let mut agent = Agent::start(PROGRAM, &arguments, &[]).unwrap();
    let is_open = |line: &serde_json::Value| line["gate"] == "agent" && line["state"] == "open";
    agent.wait_for_log(is_open).await.unwrap();
    stand_still(&agent, 4500, || {
        gates.health.set(503);
    })
    .await;
    let is_closed = |line: &serde_json::Value| line["gate"] == "agent" && line["state"] == "closed";
    agent.wait_for_log(is_closed).await.unwrap();
    assert!(!agent.has_ended().unwrap());
    gates.health.set(200);
    assert_eq!(agent.exit_code().await.unwrap(), 0);
}
