//! `after`: gates that are asked only while other gates are open.

use std::fs;
use std::path::PathBuf;

use serde_json::Value;
use testkit::agent::Agent;
use testkit::api::{Request, Verb};

use crate::condition::{ALLOWS, RULE};
use crate::metrics::LISTEN;
use crate::scene::{FOREIGN, Gates, OnCluster, OnStandIn, PROGRAM, TAINT, grant};

/// The rule of [`Gates::rule`], and a program that notes each of its runs, which tests what the agent brings.
fn with_program(gates: &Gates, more: &str) -> String {
    let runs = runs_file(gates);
    let program = format!(
        "  - {{name: datapath, exec: {{command: [/bin/sh, -c, \"echo run >> {}\"]}}, periodSeconds: 0.02, after: [agent]}}\n{more}",
        runs.display()
    );
    gates.rule(&program)
}

fn runs_file(gates: &Gates) -> PathBuf {
    gates.dir.path().join("runs")
}

fn runs(gates: &Gates) -> usize {
    let runs = fs::read_to_string(runs_file(gates)).unwrap_or_default();
    runs.lines().count()
}

/// The state and the message of a gate.
async fn gate(agent: &Agent, name: &str) -> (String, String) {
    let status = agent.status().await.unwrap();
    let gates = status["rules"][0]["gates"].as_array().unwrap();
    let gate = gates.iter().find(|gate| gate["name"] == name).unwrap();
    let text = |field: &str| gate[field].as_str().unwrap().to_owned();
    (text("state"), text("message"))
}

fn waits() -> (String, String) {
    ("unknown".into(), "waits for agent".into())
}

/// nrc#272 (D18).
#[tokio::test]
async fn a_program_runs_only_while_the_gate_is_open_that_brings_what_it_tests() {
    let gates = Gates::closed().await;
    gates.write_conflist();
    let publishes = "  publishCondition: {type: example.com/Ready}\n";
    gates.configure(&with_program(&gates, publishes));
    let Some(scene) = OnCluster::with("after", &[TAINT, FOREIGN], gates).await else {
        return;
    };
    grant(scene.cluster, RULE, ALLOWS, "default").await;
    let agent = scene.agent(&LISTEN);
    let (gates, health) = (&scene.gates, &scene.gates.health);
    let condition = async |status: &str| {
        let is_it = |condition: &Value| {
            condition["type"] == "example.com/Ready" && condition["status"] == status
        };
        let find = |node: &Value| {
            let conditions = node["status"]["conditions"].as_array();
            conditions.and_then(|all| all.iter().find(|one| is_it(one)).cloned())
        };
        let node = scene
            .cluster
            .wait_for_node(scene.name, |node| find(node).is_some());
        find(&node.await.unwrap()).unwrap()
    };
    // Twelve periods of the program at least.
    health.wait_for_requests(12).await.unwrap();
    assert_eq!(runs(gates), 0);
    assert_eq!(gate(&agent, "datapath").await, waits());
    let message = condition("False").await["message"].to_string();
    assert!(message.contains("; datapath: waits for agent"), "{message}");

    health.set(200);
    scene.wait_for_taints(&[FOREIGN]).await;
    assert!(runs(gates) > 0);
    condition("True").await;

    // Nothing is under way any more once the gate says that it waits.
    health.set(503);
    condition("False").await;
    assert_eq!(gate(&agent, "datapath").await, waits());
    let before = runs(gates);
    health.wait_for_requests(12).await.unwrap();
    assert_eq!(runs(gates), before);

    health.set(200);
    condition("True").await;
    assert!(runs(gates) > before);
}

/// Runs a command, and returns its exit code, its standard output and its standard error.
async fn command(gates: &Gates, arguments: &[&str]) -> (i32, String, String) {
    let config = gates.config();
    let output = tokio::process::Command::new(PROGRAM)
        .args(arguments)
        .args(["--config", config.to_str().unwrap()])
        .output()
        .await
        .unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (
        output.status.code().unwrap(),
        text(output.stdout),
        text(output.stderr),
    )
}

#[tokio::test]
async fn check_and_wait_ask_a_gate_after_those_before_it() {
    let gates = Gates::closed().await;
    gates.write_conflist();
    gates.configure(&with_program(&gates, ""));
    let row = |table: &str| {
        let row = table.lines().find(|line| line.contains("datapath"));
        let words: Vec<_> = row.unwrap().split_whitespace().map(str::to_owned).collect();
        words[1..].join(" ")
    };
    let (code, table, _) = command(&gates, &["check"]).await;
    assert_eq!(
        (code, row(&table).as_str()),
        (3, "datapath unknown waits for agent")
    );
    let (code, _, log) = command(&gates, &["wait", "--timeout", "300ms"]).await;
    assert_eq!(code, 3);
    assert!(log.contains("waits for agent"), "{log}");
    assert_eq!(runs(&gates), 0);

    gates.health.set(200);
    let (code, table, _) = command(&gates, &["check"]).await;
    assert_eq!(code, 0, "{table}");
    assert!(row(&table).starts_with("datapath open"), "{table}");
    assert_eq!(runs(&gates), 1);
    let (code, _, log) = command(&gates, &["wait", "--timeout", "10s"]).await;
    assert_eq!(code, 0, "{log}");
    assert!(runs(&gates) > 1);
}

#[tokio::test]
async fn an_object_is_watched_only_while_the_gate_before_it_is_open() {
    let gates = Gates::closed().await;
    gates.write_conflist();
    let driver = "  - {name: driver, csiDriver: {name: ebs.csi.aws.com}, after: [agent]}\n";
    gates.configure(&gates.rule(driver));
    let scene = OnStandIn::with(&[TAINT], gates).await;
    let agent = scene.agent(&LISTEN);
    let health = &scene.gates.health;
    let watches = |all: &[Request]| {
        let all = all.iter();
        all.filter(|request| request.verb == Verb::Watch && request.uri.contains("csinodes"))
            .count()
    };
    let wait_for = async |count: usize| {
        let enough = |all: &[Request]| watches(all) >= count;
        scene.server.wait_for_requests(enough).await.unwrap();
    };
    let driver_says = async |state: &str, reason: &str| {
        let says = |line: &Value| {
            let text = line["reason"].as_str().unwrap_or_default();
            line["gate"] == "driver" && line["state"] == state && text.contains(reason)
        };
        agent.wait_for_log(says).await.unwrap();
    };
    scene.wait_for(Verb::Watch, 1).await;
    driver_says("unknown", "waits for agent").await;
    health.wait_for_requests(12).await.unwrap();
    assert_eq!(watches(&scene.server.requests()), 0);
    health.set(200);
    wait_for(1).await;
    driver_says("closed", "CSINode").await;
    health.set(503);
    while gate(&agent, "driver").await != waits() {}
    health.wait_for_requests(12).await.unwrap();
    assert_eq!(watches(&scene.server.requests()), 1);
    health.set(200);
    wait_for(2).await;
}
