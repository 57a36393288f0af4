//! Rules of the node-readiness-controller beside an agent. A model of the controller enforces them, with the decisions and
//! the writes of its `internal/controller/node_controller.go`.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures_util::StreamExt as _;
use http::{Method, Request, header};
use kube::Client;
use kube::core::WatchEvent;
use serde_json::{Value, json};
use testkit::taints;
use tokio::task::JoinSet;

use crate::condition::{ALLOWS, RULE, publishing};
use crate::scene::{FOREIGN, Gates, OnCluster, TAINT, grant};

/// A `NodeReadinessRule` for one Node with `enforcementMode: continuous`: the taint is there while the condition is not
/// `True`.
#[derive(Clone)]
struct ReadinessRule {
    node: &'static str,
    key: &'static str,
    condition: &'static str,
}

/// The running controller; stopped when dropped.
struct Controller {
    writes: Arc<AtomicUsize>,
    _task: JoinSet<()>,
}

impl ReadinessRule {
    async fn enforce(self, scene: &OnCluster) -> Controller {
        let client = scene.cluster.client().await.unwrap();
        let writes = Arc::new(AtomicUsize::new(0));
        let counter = Arc::clone(&writes);
        let mut task = JoinSet::new();
        task.spawn(async move {
            let uri = format!(
                "/api/v1/nodes?watch=true&fieldSelector=metadata.name%3D{}",
                self.node
            );
            let watch = Request::get(uri).body(Vec::new()).unwrap();
            let mut events = pin!(client.request_events::<Value>(watch).await.unwrap());
            while let Some(event) = events.next().await {
                if let WatchEvent::Added(node) | WatchEvent::Modified(node) = event.unwrap() {
                    self.reconcile(&client, &node, &counter).await;
                }
            }
        });
        Controller {
            writes,
            _task: task,
        }
    }

    /// Adds the taint if it is missing and the condition is not `True`, removes it if it is there and the condition is.
    async fn reconcile(&self, client: &Client, node: &Value, writes: &AtomicUsize) {
        let is_met = status_of(node, self.condition) == "True";
        let mut latest = node.clone();
        // As often as its client library tries after a conflict.
        for _ in 0..5 {
            let mut taints = latest["spec"]["taints"]
                .as_array()
                .cloned()
                .unwrap_or_default();
            let has_it = taints.iter().any(|taint| taint["key"] == self.key);
            if has_it != is_met {
                return;
            }
            taints.retain(|taint| taint["key"] != self.key);
            if !is_met {
                taints.push(json!({"key": self.key, "effect": "NoSchedule"}));
            }
            let version = &latest["metadata"]["resourceVersion"];
            let patch =
                json!({"metadata": {"resourceVersion": version}, "spec": {"taints": taints}});
            writes.fetch_add(1, Ordering::Relaxed);
            if self.send(client, Method::PATCH, &patch).await.is_some() {
                return;
            }
            latest = self.send(client, Method::GET, &Value::Null).await.unwrap();
        }
    }

    /// `None` after a conflict.
    async fn send(&self, client: &Client, method: Method, body: &Value) -> Option<Value> {
        let request = Request::builder()
            .method(method)
            .uri(format!("/api/v1/nodes/{}", self.node))
            .header(header::CONTENT_TYPE, "application/merge-patch+json")
            .body(body.to_string().into_bytes());
        match client.request(request.unwrap()).await {
            Err(kube::Error::Api(status)) if status.code == 409 => None,
            answer => Some(answer.unwrap()),
        }
    }
}

fn status_of<'a>(node: &'a Value, condition: &str) -> &'a str {
    let conditions = node["status"]["conditions"].as_array();
    let found = conditions.and_then(|all| all.iter().find(|one| one["type"] == condition));
    found
        .and_then(|one| one["status"].as_str())
        .unwrap_or("Unknown")
}

fn has(node: &Value, key: &str) -> bool {
    taints(node).iter().any(|taint| taint.starts_with(key))
}

async fn set_condition(scene: &OnCluster, kind: &str, status: &str) {
    let conditions = json!([{"type": kind, "status": status}]);
    let patch = json!({"status": {"conditions": conditions}}).to_string();
    let patch = [
        "patch",
        "node",
        scene.name,
        "--subresource=status",
        "--patch",
        &patch,
    ];
    scene.cluster.kubectl(&patch).await.unwrap();
}

/// Returns when the agent has asked its endpoint so often that anyone who wanted to write would have written.
async fn is_settled(scene: &OnCluster) -> bool {
    let version = async || {
        scene.cluster.node(scene.name).await.unwrap()["metadata"]["resourceVersion"].clone()
    };
    let before = version().await;
    scene.gates.health.wait_for_requests(20).await.unwrap();
    version().await == before
}

#[tokio::test]
async fn a_readiness_rule_follows_the_published_condition_and_neither_remover_disturbs_the_other() {
    const KEY: &str = "readiness.k8s.io/network";
    const KIND: &str = "readiness.k8s.io/NetworkReady";
    let gates = Gates::closed().await;
    gates.configure(&publishing(&gates, KIND));
    let taints = [FOREIGN, "readiness.k8s.io/network:NoSchedule", TAINT];
    let Some(scene) = OnCluster::with("readiness-rule", &taints, gates).await else {
        return;
    };
    grant(scene.cluster, RULE, ALLOWS, "default").await;
    let rule = ReadinessRule {
        node: scene.name,
        key: KEY,
        condition: KIND,
    };
    let controller = rule.enforce(&scene).await;
    let _agent = scene.agent(&[]);
    let until = async |wanted: &dyn Fn(&Value) -> bool| {
        scene
            .cluster
            .wait_for_node(scene.name, wanted)
            .await
            .unwrap()
    };
    until(&|node| status_of(node, KIND) == "False").await;
    assert_eq!(controller.writes.load(Ordering::Relaxed), 0);

    scene.gates.open_both();
    let node = until(&|node| !has(node, KEY) && !has(node, TAINT)).await;
    assert_eq!(status_of(&node, KIND), "True");
    assert!(has(&node, FOREIGN));
    assert!(is_settled(&scene).await);
    let patches = scene
        .requests()
        .await
        .iter()
        .filter(|request| request.verb == "patch")
        .count();
    // The condition `False` and `True`, and the taint, twice if the controller's write came between.
    assert!(patches <= 4, "{patches} patches of the agent");
    let writes = controller.writes.load(Ordering::Relaxed);
    // One, and one more for each write of the agent that came between.
    assert!(writes <= 4, "{writes} writes of the controller");

    // The controller puts its own taint back, and the agent leaves it alone.
    scene.gates.health.set(503);
    until(&|node| has(node, KEY)).await;
    assert!(is_settled(&scene).await);
    let node = scene.cluster.node(scene.name).await.unwrap();
    assert!(has(&node, KEY) && !has(&node, TAINT));
    scene.gates.health.set(200);
    until(&|node| !has(node, KEY)).await;
    assert!(is_settled(&scene).await);
}

/// Two owners of one taint: see B19.
#[tokio::test]
async fn a_taint_of_a_readiness_rule_that_an_agent_also_removes_comes_back_until_the_condition_is_met()
 {
    const KEY: &str = "readiness.k8s.io/storage";
    const KIND: &str = "example.com/StorageReady";
    let gates = Gates::open().await;
    let theirs = "- {name: theirs, taint: {key: readiness.k8s.io/storage}, gates: []}\n";
    gates.configure(&(publishing(&gates, "example.com/Published") + theirs));
    let taints = [FOREIGN, "readiness.k8s.io/storage:NoSchedule"];
    let Some(scene) = OnCluster::with("contested-rule", &taints, gates).await else {
        return;
    };
    grant(scene.cluster, RULE, ALLOWS, "default").await;
    let rule = ReadinessRule {
        node: scene.name,
        key: KEY,
        condition: KIND,
    };
    let controller = rule.enforce(&scene).await;
    let agent = scene.agent(&[]);
    let warning = "another program keeps putting the taint back; removing it less often";
    agent.wait_for_message(warning).await.unwrap();
    assert_eq!(agent.count("removed the taint"), 5);
    set_condition(&scene, KIND, "True").await;
    let gone = scene
        .cluster
        .wait_for_node(scene.name, |node| !has(node, KEY))
        .await;
    assert!(has(&gone.unwrap(), FOREIGN));
    assert!(is_settled(&scene).await);
    let writes = controller.writes.load(Ordering::Relaxed);
    assert!(
        (6..20).contains(&writes),
        "{writes} writes of the controller"
    );
}
