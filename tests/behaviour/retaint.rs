//! `retaint`: the taint is put back when a gate has closed.

mod key;
mod orphans;

use std::path::Path;
use std::time::{Duration, Instant, SystemTime};

use http::HeaderMap;
use serde_json::Value;
use testkit::agent::Agent;
use testkit::api::{Answer, Reply, Verb};

use crate::events::{ON, allow, wait_for_event};
use crate::metrics::{LISTEN, Page};
use crate::mounts::program_seeing;
use crate::scene::{FOREIGN, Gates, OnCluster, OnStandIn};
use testkit::config_map::ConfigMap;

const TAINT: &str = "example.com/not-ready:NoSchedule";
/// The shortest time that a configuration can have.
const AFTER: Duration = Duration::from_secs(30);

async fn gates() -> Gates {
    let gates = Gates::open().await;
    gates.configure(&(retainting(&gates) + ON));
    gates
}

/// The rule of [`Gates::rule`], which puts [`TAINT`] back.
pub(crate) fn retainting(gates: &Gates) -> String {
    gates.rule("  retaint: {}\n").replace(
        "{key: example.com/not-ready}",
        "{key: example.com/not-ready, effect: NoSchedule}",
    )
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
    let rule = &agent.status().await.unwrap()["rules"][0];
    assert!(rule["lastPutBack"].is_string(), "{rule:#}");
    let event = wait_for_event(scene.cluster, scene.name, "TaintPutBack", 1).await;
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
    // Without a foreign taint, the patch must create the list.
    let Some(scene) = OnCluster::with("retaint-restart", &[], gates().await).await else {
        return;
    };
    scene.set_taints(&[]).await;
    scene.gates.health.set(503);
    let mut agent = scene.agent(&[]);
    let lapses = |line: &Value| line["decision"] == "lapsing";
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
    let start = || just_booted(&scene.gates, scene.name, &scene.kubeconfig, &[]);
    let Some(new) = start() else {
        return;
    };
    let lapses = |line: &Value| line["decision"] == "lapsing";
    new.wait_for_log(lapses).await.unwrap();
    drop(new);
    let (cluster, name) = (scene.cluster, scene.name);
    cluster
        .backdate_node(name, "2026-01-01T00:00:00Z")
        .await
        .unwrap();
    let started = Instant::now();
    let _agent = start();
    scene.wait_for_taints(&[FOREIGN, TAINT]).await;
    assert!(started.elapsed() < AFTER, "{:?}", started.elapsed());
    scene.gates.health.set(200);
    scene.wait_for_taints(&[FOREIGN]).await;
}

#[tokio::test]
async fn a_rule_that_a_reload_brings_has_not_come_up_with_the_boot() {
    let scene = OnStandIn::with(&[FOREIGN], Gates::closed().await).await;
    let mut map = ConfigMap::mount(scene.gates.dir.path(), &scene.gates.rule(""));
    let Some(agent) = just_booted(&scene.gates, "node", &scene.kubeconfig, &[]) else {
        return;
    };
    agent.wait_for_message("watching the Node").await.unwrap();
    map.swap(&retainting(&scene.gates).replace("name: cni", "name: later"));
    let is_about_to = |line: &Value| {
        let decision = line["decision"].as_str().unwrap_or_default();
        line["rule"] == "later" && ["lapsing", "lapsed"].contains(&decision)
    };
    let first = agent.wait_for_log(is_about_to).await.unwrap();
    assert_eq!(first["decision"], "lapsing");
}

#[tokio::test]
async fn a_put_back_that_the_server_takes_and_undoes_is_told_as_that_and_not_repeated() {
    let scene = OnStandIn::with(&[FOREIGN], Gates::closed().await).await;
    scene.gates.configure(&retainting(&scene.gates));
    let undone = Answer::Reply(Reply {
        status: 200,
        headers: HeaderMap::new(),
        body: scene.server.node("node").unwrap(),
    });
    scene.server.respond_next(Verb::Patch, usize::MAX, undone);
    let Some(agent) = just_booted(&scene.gates, "node", &scene.kubeconfig, &LISTEN) else {
        return;
    };
    let message = "the server accepted the taint, but it is gone again";
    let line = agent.wait_for_message(message).await.unwrap();
    assert_eq!(
        (&line["level"], &line["key"]),
        (&"WARN".into(), &"example.com/not-ready".into())
    );
    scene.gates.health.wait_for_requests(5).await.unwrap();
    let rule = &agent.status().await.unwrap()["rules"][0];
    assert_eq!(
        (&rule["decision"], &rule["lastPutBack"]),
        (&"absent".into(), &Value::Null),
        "{rule:#}"
    );
    assert_eq!(scene.count(Verb::Patch), 1);
    assert_eq!(agent.count("put the taint back"), 0);
}

/// An agent that sees a boot time of a moment ago. `None` if the test was skipped.
pub(crate) fn just_booted(
    gates: &Gates,
    node: &str,
    kubeconfig: &Path,
    more: &[&str],
) -> Option<Agent> {
    let now = SystemTime::UNIX_EPOCH.elapsed().unwrap().as_secs();
    let stat = gates.dir.path().join("stat");
    std::fs::write(&stat, format!("btime {now}\n")).unwrap();
    let wrapper = program_seeing(&[(&stat, "/proc/stat")])?;
    let wrapper: Vec<_> = wrapper.iter().map(String::as_str).collect();
    Some(gates.agent_in(&wrapper, node, kubeconfig, more, &[]))
}
