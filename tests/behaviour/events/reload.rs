//! A new configuration while the agent runs.

use serde_json::Value;

use super::{EVENTS, ON, READY, all, event, removed_taint, scene, wait_for_event};
use crate::scene::TAINT;

const RELOADED: &str = "reloaded the configuration";

#[tokio::test]
async fn events_are_switched_on_and_off_while_the_agent_runs() {
    let Some(scene) = scene("events-switched", &[TAINT], READY).await else {
        return;
    };
    let (cluster, name) = (scene.cluster, scene.name);
    scene.gates.configure(READY);
    let agent = scene.agent(&[]);
    agent.wait_for_message("removed the taint").await.unwrap();
    let again = READY.replace("name: ready", "name: again");
    let rules = [
        format!("{READY}{ON}"),
        READY.to_owned(),
        format!("{again}{ON}"),
    ];
    for (version, rules) in (1..).zip(rules) {
        scene.gates.configure(&rules);
        agent.wait_for_count(RELOADED, version).await.unwrap();
        cluster.set_taints(name, &[TAINT]).await.unwrap();
        let removals = agent.wait_for_count("removed the taint", version + 1);
        removals.await.unwrap();
        if version == 1 {
            wait_for_event(cluster, name, "TaintRemoved", 1).await;
        }
    }
    // Events are sent in order, so these are all.
    let removed = |rule: &str| format!("{TAINT} (rule {rule})");
    let is_last = |event: &Value| {
        event["reason"] == "TaintRemoved" && removed_taint(&event["note"]) == removed("again")
    };
    event(cluster, name, is_last).await;
    let all = all(cluster, name).await.into_iter();
    let all: Vec<_> = all.map(|(_, note)| removed_taint(&note.into())).collect();
    assert_eq!(all, [removed("again"), removed("ready")]);
    let requests = scene.requests().await;
    let events = requests.iter().filter(|it| it.uri.starts_with(EVENTS));
    assert_eq!(events.count(), 2, "the second removal has no Event");
}

/// receptor#350 (B30).
#[tokio::test]
async fn a_bad_configuration_file_has_an_event() {
    let Some(scene) = scene("events-bad-file", &[TAINT], READY).await else {
        return;
    };
    let _agent = scene.agent(&[]);
    wait_for_event(scene.cluster, scene.name, "TaintRemoved", 1).await;
    scene.gates.configure("- {name: bad, gates: []}\n");
    let event = wait_for_event(scene.cluster, scene.name, "ReloadFailed", 1).await;
    assert_eq!(event["type"], "Warning");
    assert_eq!(event["action"], "ReloadConfiguration");
    let note = event["note"].as_str().unwrap();
    let beginning =
        "The configuration file is invalid; untaint continues with the active configuration: ";
    assert!(
        note.starts_with(beginning) && note.contains("taint"),
        "{note}"
    );
}
