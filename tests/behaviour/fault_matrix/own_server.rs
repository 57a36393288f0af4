//! The server itself is away, or has lost all it knew. It is of the test's own.

use std::time::{Duration, Instant};

use testkit::agent::Agent;
use testkit::cluster::{self, Cluster};

use super::{OTHERS, SLACK, TAINTS, WATCH_FAILED};
use crate::scene::{Gates, own_taints};

const NODE: &str = "node";
/// Longest wait of the agent for a server while a taint waits for nothing else.
const LONGEST_WAIT: Duration = Duration::from_secs(5);
/// A server that is just coming up refuses what it would not refuse later, and a refused token is tried twice. The waits
/// between the reads double from 20 ms to [`LONGEST_WAIT`], those between the watches from 500 ms.
const REQUESTS: usize = 30;

#[tokio::test]
async fn a_server_that_stops_and_starts_or_loses_its_data_is_survived() {
    let Some(mut cluster) = cluster::fresh(&[]).await else {
        return;
    };
    let gates = Gates::closed().await;
    let directory = gates.dir.path();
    cluster.create_node(NODE, &TAINTS).await.unwrap();
    let kubeconfig = cluster.agent_kubeconfig(directory, NODE).await.unwrap();

    // Down at the start.
    cluster.stop_api_server();
    let listen = ["--listen", "127.0.0.1:0"];
    let mut agent = gates.agent(NODE, &kubeconfig, &listen);
    agent.wait_for_message(WATCH_FAILED).await.unwrap();
    gates.write_conflist();
    gates.health.set(200);
    cluster.start_api_server().await.unwrap();
    removed(&cluster, &agent, 1, 0).await;

    // Stopped while it is to remove the taint, and started.
    let before = tainted_with_a_closed_gate(&cluster, &gates, &agent, 2).await;
    cluster.stop_api_server();
    gates.health.set(200);
    agent.wait_for_count(WATCH_FAILED, 2).await.unwrap();
    cluster.start_api_server().await.unwrap();
    removed(&cluster, &agent, 2, before).await;

    // Its data lost: the Node, and with them the agent's account and its rights.
    let before = tainted_with_a_closed_gate(&cluster, &gates, &agent, 3).await;
    let old = cluster.node(NODE).await.unwrap();
    cluster.stop_api_server();
    cluster.lose_data().await.unwrap();
    gates.health.set(200);
    cluster.start_api_server().await.unwrap();
    let new = cluster.create_node(NODE, &TAINTS).await.unwrap();
    assert_ne!(old["metadata"]["uid"], new["metadata"]["uid"]);
    // As the kubelet does.
    cluster.agent_kubeconfig(directory, NODE).await.unwrap();
    removed(&cluster, &agent, 3, before).await;

    // Nothing is left of that: it is the watch that tells of the next taint.
    let before = tainted_with_a_closed_gate(&cluster, &gates, &agent, 4).await;
    gates.health.set(200);
    removed(&cluster, &agent, 4, before).await;

    let status = agent.status().await.unwrap();
    assert_eq!(status["api"]["watching"], true, "{status:#}");
    assert!(!agent.has_ended().unwrap());
    assert!(agent.logs().iter().all(|line| line["level"] != "ERROR"));
}

/// Returns when the agent has seen a taint for the `nth` time, with how many requests it has sent so far.
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

/// The taint goes soon, and neither anything else nor many requests, `before` of which had been sent already.
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

/// The agent's, by verb and status code. By its user agent, as nobody knows who sent a refused token.
async fn requests(cluster: &Cluster) -> Vec<(String, u64)> {
    let requests = cluster.requests(|entry| entry.user_agent.starts_with("untaint/"));
    let requests = requests.await.unwrap().into_iter();
    let summary = requests.map(|entry| (entry.verb, entry.code.unwrap_or_default()));
    summary.collect()
}
