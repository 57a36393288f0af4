//! A server that is stopped, or that has lost its data. Each test has its own server.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use testkit::agent::Agent;
use testkit::cluster::{self, Cluster};
use testkit::kubeconfig::point_at;
use testkit::proxy::FaultProxy;

use super::{OTHERS, REQUEST_FAILED, SLACK, TAINTS, WATCH_FAILED};
use crate::scene::{Gates, own_taints};

const NODE: &str = "node";
/// The longest wait between two tries while a taint waits only for the server.
const LONGEST_WAIT: Duration = Duration::from_secs(5);
/// While a server starts, it refuses some requests, and the agent tries a refused token twice. The waits between the
/// reads double from 20 ms to [`LONGEST_WAIT`], those between the watches from 500 ms.
const REQUESTS: usize = 30;

#[tokio::test]
async fn a_server_that_stops_and_starts_or_loses_its_data_is_survived() {
    let Some(mut cluster) = cluster::fresh(&[]).await else {
        return;
    };
    let gates = Gates::closed().await;
    let kubeconfig = gates.tainted_node(&cluster, NODE, &TAINTS).await;

    // The server is down at the start.
    cluster.stop_api_server();
    let listen = ["--listen", "127.0.0.1:0"];
    let mut agent = gates.agent(NODE, &kubeconfig, &listen);
    agent.wait_for_message(WATCH_FAILED).await.unwrap();
    gates.open_both();
    cluster.start_api_server().await.unwrap();
    removed(&cluster, &agent, 1, 0).await;

    // The server is stopped while a removal is due, and started again.
    let before = tainted_with_a_closed_gate(&cluster, &gates, &agent, 2).await;
    cluster.stop_api_server();
    gates.health.set(200);
    agent.wait_for_count(WATCH_FAILED, 2).await.unwrap();
    cluster.start_api_server().await.unwrap();
    removed(&cluster, &agent, 2, before).await;

    // The server loses its data: the Node, and the agent's account with its rights.
    let before = tainted_with_a_closed_gate(&cluster, &gates, &agent, 3).await;
    let old = cluster.node(NODE).await.unwrap();
    cluster.stop_api_server();
    cluster.lose_data().await.unwrap();
    gates.health.set(200);
    cluster.start_api_server().await.unwrap();
    let new = cluster.create_node(NODE, &TAINTS).await.unwrap();
    assert_ne!(old["metadata"]["uid"], new["metadata"]["uid"]);
    // The kubelet writes a new token, too.
    cluster
        .agent_kubeconfig(gates.dir.path(), NODE)
        .await
        .unwrap();
    removed(&cluster, &agent, 3, before).await;

    // The fault has ended: the watch sends the next taint.
    let before = tainted_with_a_closed_gate(&cluster, &gates, &agent, 4).await;
    gates.health.set(200);
    removed(&cluster, &agent, 4, before).await;

    let status = agent.status().await.unwrap();
    assert_eq!(status["api"]["watching"], true, "{status:#}");
    assert!(!agent.has_ended().unwrap());
    assert!(agent.logs().iter().all(|line| line["level"] != "ERROR"));
}

/// kube-apiserver sends GOAWAY after one answer of fifty, to spread connections over its replicas.
#[tokio::test]
async fn a_server_that_says_goaway_now_and_then_is_asked_once_for_each_removal() {
    let Some(cluster) = cluster::fresh(&["--goaway-chance=0.02"]).await else {
        return;
    };
    let gates = Gates::closed().await;
    // The agent removes each taint five times at full speed.
    let keys: Vec<_> = (0..200).map(|nth| format!("taint-{nth}")).collect();
    let rule = |key: &String| format!("- {{name: {key}, taint: {{key: {key}}}, gates: []}}\n");
    gates.configure(&keys.iter().map(rule).collect::<String>());
    let kubeconfig = gates.tainted_node(&cluster, NODE, &[]).await;
    let proxy = FaultProxy::start(cluster.address()).await.unwrap();
    point_at(&kubeconfig, proxy.address()).unwrap();
    let agent = gates.agent(NODE, &kubeconfig, &[]);
    let mut removals = 0;
    for key in keys.iter().cycle().take(5 * keys.len()) {
        let taint = format!("{key}:NoSchedule");
        cluster.set_taints(NODE, &[&taint]).await.unwrap();
        removals += 1;
        let removed = agent.wait_for_count("removed the taint", removals);
        removed.await.unwrap();
        if proxy.connections() >= 4 {
            break;
        }
    }
    assert!(proxy.connections() >= 4, "{removals} removals");
    let requests = requests(&cluster).await;
    let patches = requests.iter().filter(|(verb, _)| verb == "patch");
    assert_eq!(patches.count(), removals, "{requests:?}");
    assert_eq!(agent.count(REQUEST_FAILED), 0);
}

/// Nodes, accounts and rights are the same as before, and all versions are lower than what the agent knows.
#[tokio::test]
async fn a_server_whose_data_is_a_restored_backup_is_believed() {
    let Some(mut cluster) = cluster::fresh(&[]).await else {
        return;
    };
    let gates = Gates::open().await;
    let kubeconfig = gates.tainted_node(&cluster, NODE, &TAINTS).await;
    let old = cluster.node(NODE).await.unwrap();
    cluster.stop_api_server();
    cluster.back_up_data().unwrap();
    cluster.start_api_server().await.unwrap();

    let listen = ["--listen", "127.0.0.1:0"];
    let agent = gates.agent(NODE, &kubeconfig, &listen);
    removed(&cluster, &agent, 1, 0).await;
    let mut version = 0;
    for nth in 0..100 {
        let label = json!({"metadata": {"labels": {"nth": nth.to_string()}}});
        version = version_of(&cluster.patch_node(NODE, &label).await.unwrap());
    }
    let is_known = |line: &Value| line["resource_version"] == version;
    agent.wait_for_log(is_known).await.unwrap();

    let before = requests(&cluster).await.len();
    cluster.stop_api_server();
    cluster.restore_data().unwrap();
    cluster.start_api_server().await.unwrap();
    removed(&cluster, &agent, 2, before).await;
    let node = cluster.node(NODE).await.unwrap();
    assert_eq!(node["metadata"]["uid"], old["metadata"]["uid"]);
    assert!(version_of(&node) < version, "{node:#}");
}

fn version_of(node: &Value) -> u64 {
    let version = node["metadata"]["resourceVersion"].as_str();
    version.unwrap().parse().unwrap()
}

/// Waits until the agent has seen a taint for the `nth` time. Returns the number of its requests so far.
async fn tainted_with_a_closed_gate(
    cluster: &Cluster,
    gates: &Gates,
    agent: &Agent,
    nth: usize,
) -> usize {
    gates.health.set(503);
    cluster.set_taints(NODE, &TAINTS).await.unwrap();
    agent.wait_for_count("saw the taint", nth).await.unwrap();
    requests(cluster).await.len()
}

/// Fails unless the agent soon removes the taint and no other taint, with few requests after the first `before` ones.
async fn removed(cluster: &Cluster, agent: &Agent, nth: usize, before: usize) {
    let began = Instant::now();
    let is_removed = agent.wait_for_count("removed the taint", nth);
    is_removed.await.unwrap();
    let took = began.elapsed();
    assert!(took < LONGEST_WAIT + SLACK, "{took:?}");
    assert_eq!(own_taints(&cluster.node(NODE).await.unwrap()), OTHERS);
    let requests = requests(cluster).await;
    let requests = &requests[before..];
    let removals = |request: &&(String, u64)| **request == ("patch".to_owned(), 200);
    assert_eq!(requests.iter().filter(removals).count(), 1, "{requests:?}");
    assert!(requests.len() <= REQUESTS, "{requests:?}");
}

/// The agent's requests, by verb and status code. They are found by the user agent, because a refused token has no
/// user.
async fn requests(cluster: &Cluster) -> Vec<(String, u64)> {
    let requests = cluster.requests(|entry| entry.user_agent.starts_with("untaint/"));
    let requests = requests.await.unwrap().into_iter();
    let summary = requests.map(|entry| (entry.verb, entry.code.unwrap_or_default()));
    summary.collect()
}
