//! `retaint` with a key of its own.

use testkit::config_map::ConfigMap;

use super::{TAINT, just_booted, retainting};
use crate::metrics::{LISTEN, Page};
use crate::scene::{FOREIGN, Gates, OnCluster};

/// What the rule puts back.
const LAPSED: &str = "status-taint.cluster-autoscaler.kubernetes.io/not-ready:NoSchedule";

/// The rule that puts [`LAPSED`] back in the place of [`TAINT`].
fn rule(gates: &Gates) -> String {
    let (key, _) = LAPSED.split_once(':').unwrap();
    retainting(gates).replace("retaint: {}", &format!("retaint: {{key: {key}}}"))
}

async fn scene(name: &'static str, taints: &[&str]) -> Option<OnCluster> {
    let gates = Gates::open().await;
    gates.health.set(503);
    gates.configure(&rule(&gates));
    OnCluster::with(name, taints, gates).await
}

#[tokio::test]
async fn the_taint_that_is_put_back_has_that_key_and_both_are_removed_when_the_gates_open() {
    let Some(scene) = scene("retaint-key", &[FOREIGN]).await else {
        return;
    };
    let (cluster, name) = (scene.cluster, scene.name);
    let created = cluster.backdate_node(name, "2026-01-01T00:00:00Z");
    created.await.unwrap();
    let Some(agent) = just_booted(&scene.gates, name, &scene.kubeconfig, &LISTEN) else {
        return;
    };
    scene.wait_for_taints(&[FOREIGN, LAPSED]).await;
    let line = agent.wait_for_message("put the taint back").await.unwrap();
    assert_eq!(line["taint"], LAPSED);
    let rule = &agent.status().await.unwrap()["rules"][0];
    let found = (&rule["taint"], &rule["retaintTaint"], &rule["decision"]);
    assert_eq!(
        found,
        (&TAINT.into(), &LAPSED.into(), &"waiting".into()),
        "{rule:#}"
    );
    // Something puts the start-up taint on the Node, too.
    scene.set_taints(&[TAINT, FOREIGN, LAPSED]).await;
    scene.gates.health.set(200);
    scene.wait_for_taints(&[FOREIGN]).await;
    agent.wait_for_count("removed the taint", 2).await.unwrap();
    let patches = scene.requests().await;
    let patches = patches.iter().filter(|request| request.verb == "patch");
    assert_eq!(
        patches.count(),
        2,
        "one that adds, and one that removes both"
    );
    Page::of(&agent).await.has(&[
        (r#"untaint_rule_put_backs_total{rule="cni"}"#, "1"),
        (r#"untaint_rule_removals_total{rule="cni"}"#, "2"),
    ]);
}

#[tokio::test]
async fn an_agent_that_finds_it_after_a_restart_and_run_once_remove_it_when_the_gates_open() {
    for (name, more) in [
        ("retaint-key-again", &[][..]),
        ("retaint-key-once", &["--once"]),
    ] {
        let Some(scene) = scene(name, &[LAPSED, FOREIGN]).await else {
            return;
        };
        let mut agent = scene.agent(more);
        let line = agent.wait_for_message("saw the taint").await.unwrap();
        assert_eq!(line["taint"], LAPSED);
        scene.gates.health.wait_for_requests(3).await.unwrap();
        assert_eq!(scene.taints().await, [LAPSED, FOREIGN]);
        scene.gates.health.set(200);
        scene.wait_for_taints(&[FOREIGN]).await;
        if !more.is_empty() {
            assert_eq!(agent.exit_code().await.unwrap(), 0);
        }
    }
}

#[tokio::test]
async fn a_startup_key_is_worth_a_warning_at_the_start_and_at_a_reload() {
    let Some(scene) = scene("retaint-key-warning", &[FOREIGN]).await else {
        return;
    };
    let startup = retainting(&scene.gates).replace(
        "example.com",
        "startup-taint.cluster-autoscaler.kubernetes.io",
    );
    let mut map = ConfigMap::mount(scene.gates.dir.path(), &startup);
    let agent = scene.agent(&[]);
    let warning = "the configuration file is valid, with a warning";
    let line = agent.wait_for_message(warning).await.unwrap();
    let problem = line["problem"].as_str().unwrap();
    assert!(
        problem.contains("rules[0].retaint: puts back a taint with the key"),
        "{problem}"
    );
    map.swap(&rule(&scene.gates));
    agent
        .wait_for_message("reloaded the configuration")
        .await
        .unwrap();
    assert_eq!(agent.count(warning), 1);
    map.swap(&startup);
    agent.wait_for_count(warning, 2).await.unwrap();
}
