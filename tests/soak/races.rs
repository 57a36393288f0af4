//! Removals while other writers change the same list.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::pin::pin;

use futures_util::{StreamExt as _, stream};
use http::{Request, header};
use kube::Client;
use kube::core::WatchEvent;
use serde_json::{Value, json};
use tempfile::TempDir;
use testkit::agent::write_configuration;
use testkit::cluster::{self, Cluster};
use testkit::{DEADLINE, taints};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::ledger::Identity;
use crate::writer::{How, Tally, Writer};
use crate::{agent, amount, summarize};

/// The number of rules of an agent. Each has a taint.
const RULES: usize = 8;
/// The number of removals of each taint before the agent slows down. After these, the test uses another Node and agent.
const AT_ONCE: usize = 5;
/// The number of Nodes at the same time.
const NODES: usize = 3;

/// The key of a rule's taint, which the test adds and the agent removes.
fn key(rule: usize) -> String {
    format!("example.com/own-{rule}")
}

#[derive(Default)]
struct Total {
    removals: usize,
    refused: usize,
    tally: Tally,
}

/// kubernetes#128304 (A7).
#[tokio::test]
async fn not_one_foreign_taint_is_lost_resurrected_or_changed_whoever_else_writes_and_however() {
    let Some(cluster) = cluster::shared().await else {
        return;
    };
    let nodes = amount("SOAK_REMOVALS", 320).div_ceil(RULES * AT_ONCE);
    let client = cluster.client().await.unwrap();
    let mut races = pin!(
        stream::iter(0..nodes)
            .map(|index| race(cluster, &client, format!("race-{index}")))
            .buffer_unordered(NODES)
    );
    let mut total = Total::default();
    while let Some(one) = races.next().await {
        total.removals += one.removals;
        total.refused += one.refused;
        total.tally.add(one.tally);
    }
    let Total {
        removals,
        refused,
        tally,
    } = total;
    let differences = &tally.differences;
    summarize(&format!(
        "removals: {removals}, foreign writes: {}, foreign taints lost: {}, resurrected: {}, changed: {}, \
         conflicts: {refused} of the agents, {} of the writers, outcomes unknown: {}; {nodes} nodes",
        tally.writes,
        differences.lost,
        differences.resurrected,
        differences.changed,
        tally.conflicts,
        tally.unknown,
    ));
    assert_eq!(removals, nodes * RULES * AT_ONCE);
    assert_eq!(
        (
            differences.lost,
            differences.resurrected,
            differences.changed
        ),
        (0, 0, 0)
    );
    assert_eq!(tally.ways, How::ALL.into(), "each has written");
    assert!(refused > 0, "there was no race");
}

/// One Node, its agent and the writers.
async fn race(cluster: &Cluster, client: &Client, node: String) -> Total {
    cluster.create_node(&node, &[]).await.unwrap();
    let dir = TempDir::new().unwrap();
    cluster.agent_kubeconfig(dir.path(), &node).await.unwrap();
    let rules = (0..RULES).fold(String::new(), |mut rules, rule| {
        let taint = format!("{{key: {}, effect: NoExecute}}", key(rule));
        writeln!(rules, "- {{name: rule-{rule}, taint: {taint}, gates: []}}").unwrap();
        rules
    });
    write_configuration(&dir.path().join("config.yaml"), &rules).unwrap();
    let agent = agent(
        &node,
        dir.path(),
        &["--log-level", "debug", "--listen", "off"],
    );

    let (stop, stopped) = watch::channel(false);
    let mut writers = JoinSet::new();
    for (index, how) in How::ALL.into_iter().enumerate() {
        let writer = Writer::new(how, client.clone(), &node, own(index));
        writers.spawn(writer.run(stopped.clone()));
    }
    let removals = put_on_and_see_removed(client, &node);
    let removals = timeout(10 * DEADLINE, removals).await;
    let removals = removals.unwrap_or_else(|_| panic!("{node}: {:#?}", agent.logs()));
    stop.send_replace(true);
    let mut total = Total {
        removals,
        refused: agent.count("a request failed; trying again"),
        tally: Tally::default(),
    };
    for tally in writers.join_all().await {
        total.tally.add(tally);
    }
    let end = cluster.node(&node).await.unwrap();
    assert!(
        !taints(&end)
            .iter()
            .any(|taint| taint.ends_with(":NoExecute") && taint.contains("own-")),
        "{end:#}"
    );
    cluster.delete_node(&node).await.unwrap();
    total
}

/// The taints of a writer: some have keys of the rules with another effect, some have other keys.
fn own(writer: usize) -> Vec<Identity> {
    vec![
        (key(writer), "NoSchedule"),
        (key(writer), "PreferNoSchedule"),
        (format!("example.com/foreign-{writer}"), "NoExecute"),
        (format!("example.com/foreign-{writer}"), "NoSchedule"),
        (format!("example.com/foreign-{writer}-more"), "NoExecute"),
    ]
}

/// Adds the taint of each rule as often as the agent removes it at full speed. Returns the number of removals that it
/// saw.
async fn put_on_and_see_removed(client: &Client, node: &str) -> usize {
    let uri = format!("/api/v1/nodes?watch=true&fieldSelector=metadata.name%3D{node}");
    let request = Request::get(uri).body(Vec::new()).unwrap();
    let mut events = pin!(client.request_events::<Value>(request).await.unwrap());
    let mut left = [AT_ONCE; RULES];
    // The version with which each was added.
    let mut there: BTreeMap<usize, u64> = BTreeMap::new();
    let mut removals = 0;
    loop {
        let event = events.next().await.unwrap().unwrap();
        let (WatchEvent::Added(seen) | WatchEvent::Modified(seen)) = event else {
            panic!("{node}: {event:?}");
        };
        let has = |rule| taints(&seen).contains(&format!("{}:NoExecute", key(rule)));
        let seen_version = version(&seen);
        there.retain(|rule, since| {
            let is_gone = *since < seen_version && !has(*rule);
            removals += usize::from(is_gone);
            !is_gone
        });
        for (rule, left) in left.iter_mut().enumerate() {
            if *left > 0 && !there.contains_key(&rule) {
                let after = put_on(client, node, &key(rule)).await;
                there.insert(rule, version(&after));
                *left -= 1;
            }
        }
        if there.is_empty() {
            return removals;
        }
    }
}

/// At the start of the list, so that all other taints move by one.
async fn put_on(client: &Client, node: &str, key: &str) -> Value {
    let taint = json!({"key": key, "effect": "NoExecute"});
    let patch = json!([{"op": "add", "path": "/spec/taints/0", "value": taint}]).to_string();
    loop {
        let request = Request::patch(format!("/api/v1/nodes/{node}"))
            .header(header::CONTENT_TYPE, "application/json-patch+json")
            .body(patch.clone().into_bytes());
        match client.request(request.unwrap()).await {
            // Other writers were faster than the server several times.
            Err(kube::Error::Api(status)) if status.code == 409 => {}
            answer => return answer.unwrap(),
        }
    }
}

fn version(node: &Value) -> u64 {
    let version = node["metadata"]["resourceVersion"].as_str().unwrap();
    version.parse().unwrap()
}
