//! Load: the memory does not grow, and the agent still acts at the end.

use std::fmt::Write as _;
use std::fs;
use std::time::Instant;

use http::{Request, header};
use kube::Client;
use serde_json::{Value, json};
use tempfile::TempDir;
use testkit::agent::{Agent, write_configuration};
use testkit::api::{ApiServer, Options};
use testkit::cluster::{self, Cluster};
use testkit::health::HealthEndpoint;
use testkit::{CONFLIST, DEADLINE, node, taints};
use tokio::time::timeout;

use crate::endless::Endless;
use crate::memory::Memory;
use crate::{agent, amount, summarize};

const TAINT: &str = "example.com/not-ready:NoExecute";
const MIB: usize = 1024 * 1024;
const DEBUG: [&str; 4] = ["--log-level", "debug", "--listen", "off"];

/// Writes a configuration with one rule that has these gates.
fn configure(dir: &TempDir, gates: &str) {
    let taint = "{key: example.com/not-ready}";
    let rule = format!("- {{name: load, taint: {taint}, gates: [{gates}]}}\n");
    write_configuration(&dir.path().join("config.yaml"), &rule).unwrap();
}

fn http_gate(health: &HealthEndpoint) -> String {
    let port = health.port();
    format!("{{name: agent, httpGet: {{port: {port}}}, periodSeconds: 0.05}}")
}

async fn on_cluster(cluster: &Cluster, node: &str, taints: &[&str]) -> TempDir {
    cluster.create_node(node, taints).await.unwrap();
    let dir = TempDir::new().unwrap();
    cluster.agent_kubeconfig(dir.path(), node).await.unwrap();
    dir
}

async fn is_removed(cluster: &Cluster, node: &str) {
    let is_gone = |node: &Value| !taints(node).contains(&TAINT.to_owned());
    cluster.wait_for_node(node, is_gone).await.unwrap();
}

/// Waits until the agent has seen this version of the Node, or a later one.
async fn has_seen(agent: &Agent, node: &Value) {
    let version = node["metadata"]["resourceVersion"].as_str().unwrap();
    let version = version.parse::<u64>().ok();
    let seen = |line: &Value| {
        line["message"] == "saw the Node" && line["resource_version"].as_u64() >= version
    };
    agent.wait_for_log(seen).await.unwrap();
}

/// This is larger than a real server accepts, so it uses the stand-in.
#[tokio::test]
async fn a_node_of_two_mebibytes_that_changes_all_the_time_costs_no_memory_that_stays() {
    let server = ApiServer::start(Options::default()).await.unwrap();
    let mut large = node("node", &[TAINT]);
    large["metadata"]["annotations"]["large"] = "x".repeat(2 * MIB).into();
    server.create_node(large);
    let (dir, health) = (TempDir::new().unwrap(), HealthEndpoint::start(503).await);
    let health = health.unwrap();
    server.kubeconfig(dir.path()).unwrap();
    configure(&dir, &http_gate(&health));
    let agent = agent("node", dir.path(), &DEBUG);
    agent.wait_for_message("saw the taint").await.unwrap();
    let mut memory = Memory::default();
    let updates = amount("SOAK_LARGE_UPDATES", 20);
    for update in 0..updates {
        let stored = server.update_node("node", |node| {
            node["metadata"]["annotations"]["update"] = update.to_string().into();
        });
        has_seen(&agent, &stored).await;
        memory.look(&agent);
    }
    health.set(200);
    let is_gone = |node: &Value| taints(node).is_empty();
    server.wait_for_node("node", is_gone).await.unwrap();
    summarize(&format!("updates of a Node of 2 MiB: {updates}, {memory}"));
    memory.assert_flat(8 * 1024);
}

#[tokio::test]
async fn the_largest_node_that_the_server_takes_is_untainted() {
    let Some(cluster) = cluster::shared().await else {
        return;
    };
    let dir = on_cluster(cluster, "largest", &[TAINT]).await;
    let client = cluster.client().await.unwrap();
    // In KiB. The name of each image is one KiB long.
    let (mut taken, mut refused) = (1_usize, 4096);
    while refused - taken > 16 {
        let size = taken.midpoint(refused);
        if set_images(&client, "largest", size).await {
            taken = size;
        } else {
            refused = size;
        }
    }
    assert!(taken > 1024, "{taken} KiB");
    assert!(set_images(&client, "largest", taken).await);
    configure(&dir, "");
    let agent = agent("largest", dir.path(), &DEBUG);
    is_removed(cluster, "largest").await;
    agent.wait_for_message("removed the taint").await.unwrap();
    summarize(&format!(
        "largest Node that the server takes: {taken} KiB of images"
    ));
}

async fn set_images(client: &Client, node: &str, count: usize) -> bool {
    let image = |index: usize| json!({"names": [format!("{index:0>1000}")], "sizeBytes": 1});
    let images: Vec<_> = (0..count).map(image).collect();
    let patch = json!({"status": {"images": images}});
    merge(client, &format!("{node}/status"), &patch)
        .await
        .is_ok()
}

async fn merge(client: &Client, node: &str, patch: &Value) -> Result<Value, kube::Error> {
    let request = Request::patch(format!("/api/v1/nodes/{node}"))
        .header(header::CONTENT_TYPE, "application/merge-patch+json")
        .body(patch.to_string().into_bytes());
    client.request(request.unwrap()).await
}

#[tokio::test]
async fn updates_of_the_node_without_end_cost_no_memory_and_the_last_one_is_acted_on() {
    let Some(cluster) = cluster::shared().await else {
        return;
    };
    let dir = on_cluster(cluster, "updates", &[]).await;
    configure(&dir, "");
    let agent = agent("updates", dir.path(), &["--listen", "127.0.0.1:0"]);
    agent.wait_for_message("listening").await.unwrap();
    let client = cluster.client().await.unwrap();
    let updates = amount("SOAK_UPDATES", 1000);
    let mut memory = Memory::default();
    let began = Instant::now();
    for update in 0..updates {
        let patch = json!({"metadata": {"annotations": {"update": update.to_string()}}});
        merge(&client, "updates", &patch).await.unwrap();
        memory.look(&agent);
    }
    let took = began.elapsed();
    cluster.set_taints("updates", &[TAINT]).await.unwrap();
    is_removed(cluster, "updates").await;
    let seconds = took.as_secs_f64();
    summarize(&format!(
        "updates of a Node: {updates} in {seconds:.0} s, {memory}"
    ));
    memory.assert_flat(2 * 1024);
}

#[tokio::test]
async fn conflists_that_come_and_go_cost_no_memory_and_the_last_one_is_acted_on() {
    let Some(cluster) = cluster::shared().await else {
        return;
    };
    let dir = on_cluster(cluster, "conflists", &[TAINT]).await;
    let net_d = dir.path().join("net.d");
    fs::create_dir(&net_d).unwrap();
    let health = HealthEndpoint::start(503).await.unwrap();
    let conflist = format!(
        "{{name: conflist, cniConfig: {{dir: {}}}}}",
        net_d.display()
    );
    configure(&dir, &format!("{conflist}, {}", http_gate(&health)));
    let agent = agent("conflists", dir.path(), &["--listen", "127.0.0.1:0"]);
    agent.wait_for_message("saw the taint").await.unwrap();
    let file = net_d.join("10-demo.conflist");
    let cycles = amount("SOAK_CYCLES", 100);
    let mut memory = Memory::default();
    for cycle in 0..cycles {
        fs::write(&file, CONFLIST).unwrap();
        // Every tenth file stays until the agent has seen it. The agent may miss the others.
        if cycle % 10 == 0 {
            let gate = async || agent.status().await.unwrap()["rules"][0]["gates"][0].clone();
            let is_open = async { while gate().await["state"] != "open" {} };
            timeout(DEADLINE, is_open).await.unwrap();
        }
        fs::remove_file(&file).unwrap();
        memory.look(&agent);
    }
    fs::write(&file, CONFLIST).unwrap();
    health.set(200);
    is_removed(cluster, "conflists").await;
    summarize(&format!("conflists that came and went: {cycles}, {memory}"));
    memory.assert_flat(2 * 1024);
}

/// B13.
#[tokio::test]
async fn bodies_without_end_cost_no_memory_and_the_first_good_answer_opens() {
    let Some(cluster) = cluster::shared().await else {
        return;
    };
    let dir = on_cluster(cluster, "bodies", &[TAINT]).await;
    let endless = Endless::start().await;
    let port = endless.port;
    configure(
        &dir,
        &format!(
            "{{name: endless, httpGet: {{port: {port}, expect: {{text: ready}}}}, periodSeconds: 0.02}}"
        ),
    );
    let agent = agent("bodies", dir.path(), &DEBUG);
    let bodies = amount("SOAK_BODIES", 30);
    let mut memory = Memory::default();
    let mut answers = endless.answers.subscribe();
    for body in 1..=bodies {
        let enough = answers.wait_for(|answers| *answers >= body);
        timeout(DEADLINE, enough).await.unwrap().unwrap();
        memory.look(&agent);
    }
    endless.good.send_replace(true);
    is_removed(cluster, "bodies").await;
    summarize(&format!("bodies without end: {bodies}, {memory}"));
    memory.assert_flat(2 * 1024);
}

#[tokio::test]
async fn each_of_five_hundred_rules_removes_its_taint_and_no_other() {
    const RULES: usize = 500;
    let Some(cluster) = cluster::shared().await else {
        return;
    };
    let all: Vec<_> = (0..RULES)
        .flat_map(|rule| {
            [
                format!("example.com/own-{rule}"),
                format!("example.com/other-{rule}"),
            ]
        })
        .map(|key| format!("{key}:NoSchedule"))
        .collect();
    let all: Vec<_> = all.iter().map(String::as_str).collect();
    let dir = on_cluster(cluster, "rules", &all).await;
    let health = HealthEndpoint::start(503).await.unwrap();
    let gate = http_gate(&health).replace("0.05", "1");
    let rules = (0..RULES).fold(String::new(), |mut rules, rule| {
        let taint = format!("{{key: example.com/own-{rule}}}");
        writeln!(
            rules,
            "- {{name: rule-{rule}, taint: {taint}, gates: [{gate}]}}"
        )
        .unwrap();
        rules
    });
    write_configuration(&dir.path().join("config.yaml"), &rules).unwrap();
    let agent = agent("rules", dir.path(), &["--listen", "off"]);
    let mut memory = Memory::default();
    for _ in 0..amount("SOAK_PROBES", 2000) / 100 {
        health.wait_for_requests(100).await.unwrap();
        memory.look(&agent);
    }
    health.set(200);
    let others: Vec<_> = all.iter().skip(1).step_by(2).copied().collect();
    let are_gone = |node: &Value| !taints(node).iter().any(|taint| taint.contains("/own-"));
    let node = cluster.wait_for_node("rules", are_gone).await.unwrap();
    let mut left = taints(&node);
    left.retain(|taint| taint.starts_with("example.com/"));
    assert_eq!(left, others);
    summarize(&format!("rules: {RULES}, {memory}"));
    memory.assert_flat(8 * 1024);
}
