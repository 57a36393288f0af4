//! What a removal says about its wait.

use serde_json::{Value, json};
use testkit::agent::Agent;

use crate::metrics::LISTEN;
use crate::scene::{Gates, OnCluster, TAINT};

/// The taint is removed once every gate is open. Compares the log line with `/statusz`, and returns the last gate.
async fn removed(agent: &Agent) -> Value {
    let line = agent.wait_for_message("removed the taint").await.unwrap();
    let status = agent.status().await.unwrap();
    let rule = &status["rules"][0];
    assert!(rule["lastRemoval"].is_string(), "{rule:#}");
    let waited = line["waited_seconds"].as_f64().unwrap();
    assert!((0.0..60.0).contains(&waited), "{line}");
    assert_eq!(rule["lastRemovalWaitedSeconds"], line["waited_seconds"]);
    assert_eq!(rule["lastRemovalLastGate"], line["last_gate"]);
    line["last_gate"].clone()
}

async fn wait_for_gate(agent: &Agent, gate: &str, state: &str) {
    let is_it = |line: &Value| line["gate"] == gate && line["state"] == state;
    agent.wait_for_log(is_it).await.unwrap();
}

#[tokio::test]
async fn a_removal_says_how_long_it_waited_and_which_gate_was_the_last_to_open() {
    for (name, last) in [("waited-agent", "agent"), ("waited-file", "conflist")] {
        let Some(scene) = OnCluster::with(name, &[TAINT], Gates::closed().await).await else {
            return;
        };
        let agent = scene.agent(&LISTEN);
        for gate in ["conflist", "agent"] {
            wait_for_gate(&agent, gate, "closed").await;
        }
        if last == "agent" {
            scene.gates.write_conflist();
            wait_for_gate(&agent, "conflist", "open").await;
            scene.gates.health.set(200);
        } else {
            scene.gates.health.set(200);
            wait_for_gate(&agent, "agent", "open").await;
            scene.gates.write_conflist();
        }
        assert_eq!(removed(&agent).await, last);
    }
}

#[tokio::test]
async fn a_removal_that_no_gate_held_up_names_none() {
    let gates = Gates::open().await;
    let open = gates.rule("");
    let none = "- {name: none, taint: {key: example.com/not-ready}, gates: []}\n".to_owned();
    let late = gates.rule("  deadline: {after: 1s, action: Remove}\n");
    let late = late.replace("network: demo", "network: other");
    for (name, rules) in [
        ("waited-open", open),
        ("waited-none", none),
        ("waited-late", late),
    ] {
        let gates = Gates::open().await;
        gates.configure(&rules);
        let Some(scene) = OnCluster::with(name, &[TAINT], gates).await else {
            return;
        };
        let agent = scene.agent(&LISTEN);
        assert_eq!(removed(&agent).await, json!(null), "{name}");
    }
}
