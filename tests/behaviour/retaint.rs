//! `retaint`: the taint is put back when a gate has closed.

use std::time::{Duration, Instant, SystemTime};

use testkit::agent::Agent;

use crate::events::{ON, allow, told};
use crate::metrics::{LISTEN, Page};
use crate::mounts::program_seeing;
use crate::scene::{FOREIGN, Gates, OnCluster};

const TAINT: &str = "example.com/not-ready:NoSchedule";
/// Shortest that the configuration may ask for.
const AFTER: Duration = Duration::from_secs(30);

async fn gates() -> Gates {
    let gates = Gates::open().await;
    let rule = gates.rule("  retaint: {}\n").replace(
        "{key: example.com/not-ready}",
        "{key: example.com/not-ready, effect: NoSchedule}",
    );
    gates.configure(&(rule + ON));
    gates
}

#[tokio::test]
async fn a_gate_that_stays_closed_for_after_has_the_taint_put_back_and_removed_when_it_opens() {
    let Some(scene) = OnCluster::with("retaint", &[TAINT, FOREIGN], gates().await).await else {
        return;
    };
    allow(&scene).await;
    let agent = scene.agent(&LISTEN);
    scene.wait_for_taints(&[FOREIGN]).await;
    scene.gates.health.set(503);
    let closed = Instant::now();
    scene.wait_for_taints(&[FOREIGN, TAINT]).await;
    assert!(closed.elapsed() >= AFTER, "{:?}", closed.elapsed());
    let line = agent.wait_for_message("put the taint back").await.unwrap();
    let waits_for = line["waits_for"].as_str().unwrap();
    assert!(waits_for.starts_with("agent: "), "{line}");
    let event = told(scene.cluster, scene.name, "TaintPutBack", 1).await;
    let note = format!("Put the taint {TAINT} back (rule cni): {waits_for}");
    assert_eq!(
        (&event["type"], &event["note"]),
        (&"Warning".into(), &note.into())
    );
    Page::of(&agent).await.has(&[
        (r#"untaint_rule_put_backs_total{rule="cni"}"#, "1"),
        (r#"untaint_rule_state{rule="cni",state="waiting"}"#, "1"),
    ]);
    scene.gates.health.set(200);
    scene.wait_for_taints(&[FOREIGN]).await;
    assert_eq!(agent.count("put the taint back"), 1);
}

#[tokio::test]
async fn an_agent_that_finds_a_gate_closed_counts_from_its_own_start_and_a_signal_puts_nothing_back()
 {
    // No foreign taint: the list itself has to be made.
    let Some(scene) = OnCluster::with("retaint-restart", &[], gates().await).await else {
        return;
    };
    scene.cluster.set_taints(scene.name, &[]).await.unwrap();
    scene.gates.health.set(503);
    let mut agent = scene.agent(&[]);
    let lapses = |line: &serde_json::Value| line["decision"] == "lapsing";
    agent.wait_for_log(lapses).await.unwrap();
    agent.signal("TERM").await.unwrap();
    assert_eq!(agent.exit_code().await.unwrap(), 0);
    assert_eq!(scene.taints().await, [""; 0]);
    let started = Instant::now();
    let _agent = scene.agent(&[]);
    scene.wait_for_taints(&[TAINT]).await;
    assert!(started.elapsed() >= AFTER, "{:?}", started.elapsed());
    scene.gates.health.set(200);
    scene.wait_for_taints(&[]).await;
}

#[tokio::test]
async fn after_a_reboot_the_taint_is_put_back_at_once_unless_the_node_is_new() {
    let Some(scene) = OnCluster::with("retaint-reboot", &[FOREIGN], gates().await).await else {
        return;
    };
    scene.gates.health.set(503);
    let Some(new) = just_booted(&scene) else {
        return;
    };
    let lapses = |line: &serde_json::Value| line["decision"] == "lapsing";
    new.wait_for_log(lapses).await.unwrap();
    drop(new);
    let (cluster, name) = (scene.cluster, scene.name);
    cluster
        .backdate_node(name, "2026-01-01T00:00:00Z")
        .await
        .unwrap();
    let started = Instant::now();
    let _agent = just_booted(&scene);
    scene.wait_for_taints(&[FOREIGN, TAINT]).await;
    assert!(started.elapsed() < AFTER, "{:?}", started.elapsed());
    scene.gates.health.set(200);
    scene.wait_for_taints(&[FOREIGN]).await;
}

/// The agent on a machine that has booted just now, as far as it can tell. `None`: the test has been skipped.
fn just_booted(scene: &OnCluster) -> Option<Agent> {
    let now = SystemTime::UNIX_EPOCH.elapsed().unwrap().as_secs();
    let stat = scene.gates.dir.path().join("stat");
    std::fs::write(&stat, format!("btime {now}\n")).unwrap();
    let wrapper = program_seeing(&[(&stat, "/proc/stat")])?;
    let wrapper: Vec<_> = wrapper.iter().map(String::as_str).collect();
    Some(
        scene
            .gates
            .agent_in(&wrapper, scene.name, &scene.kubeconfig, &[], &[]),
    )
}
