//! Watches that start, but send no events, or not all of them. A man in the middle of the real server does this.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use testkit::agent::Agent;
use testkit::api::{Answer, ApiServer, Verb};
use testkit::cluster::streaming_lists;
use testkit::kubeconfig::point_at;
use testkit::skip::skip_for_version;
use tokio::time::timeout;

use super::{
    CSI_NODES, DRIVER, PODS, READY, apply, ebs, gates, kubectl, register, said, set_status,
};
use crate::scene::{OnCluster, TAINT, grant};

const NODE_FAILED: &str = "failed to watch the Node; trying again";
const GATE_FAILED: &str = "failed to watch for a gate; trying again";
const NOTHING: &str = "it sent nothing within 10 s";
const NO_BOOKMARK: &str =
    "it sent objects (1), but no bookmark with k8s.io/initial-events-end, within 10 s";
/// The longest time that a watch may be silent, and more for a busy machine.
const BOUND: Duration = Duration::from_secs(10 + 4);
/// The time after which knowledge from before a renewal is out of date, and more for a busy machine.
const OUTDATED: Duration = Duration::from_secs(2 + 3);
const DAEMON: &str = "{name: daemon, pods: {namespace: silent, matchLabels: {app: a}}}";

/// Whether the server sends the objects first, so that a watch without them is not good. Reports the test as skipped
/// otherwise.
async fn objects_come_first() -> bool {
    let so = streaming_lists().await;
    if !so {
        skip_for_version(
            "this version of Kubernetes has no streaming lists, and this test stalls one after the first",
        );
    }
    so
}

struct Scene {
    on: OnCluster,
    middle: ApiServer,
}

impl Scene {
    async fn new(name: &'static str, observed: &[&str]) -> Option<Self> {
        let on = OnCluster::with(name, &[TAINT], gates(observed).await).await?;
        let middle = ApiServer::before(on.cluster).await.unwrap();
        std::fs::write(on.kubeconfig.with_file_name("ca.crt"), middle.authority()).unwrap();
        point_at(&on.kubeconfig, middle.address()).unwrap();
        Some(Self { on, middle })
    }

    async fn set_ready(&self, status: &str) {
        let ready = json!({"conditions": [{"type": "Ready", "status": status}]});
        set_status(self.on.cluster, &["node", self.on.name], &ready).await;
    }

    /// The start of a watch with this object.
    async fn added(&self, object: &[&str]) -> Vec<Value> {
        let get = [&["get", "--output", "json"], object].concat();
        let object: Value = serde_json::from_str(&kubectl(self.on.cluster, &get).await).unwrap();
        vec![json!({"type": "ADDED", "object": object})]
    }

    /// The kind of each request for this collection.
    fn asked(&self, path: &str) -> Vec<&'static str> {
        let requests = self.middle.requests().into_iter();
        let of_it = requests.filter(|request| request.uri.split('?').next() == Some(path));
        of_it
            .map(|request| match &request.uri {
                uri if uri.contains("sendInitialEvents") => "streaming list",
                uri if uri.contains("watch=true") => "watch",
                _ => "list",
            })
            .collect()
    }
}

/// Waits for a warning with this message and such an error.
async fn warned(agent: &Agent, message: &str, error: &str) {
    let is_it = |line: &Value| {
        let said = line["error"].as_str().unwrap_or_default();
        line["message"] == message && said.contains(error)
    };
    agent.wait_for_log(is_it).await.unwrap();
    assert_eq!(agent.count(message), 1);
}

/// kubernetes#122805, static-kas#43 (D2).
#[tokio::test]
async fn a_node_watch_without_its_initial_events_is_given_up_after_10_s_for_a_list_and_a_watch() {
    for (name, error) in [("silent-start", NOTHING), ("unended-start", NO_BOOKMARK)] {
        let Some(scene) = Scene::new(name, &[READY]).await else {
            return;
        };
        scene.set_ready("True").await;
        scene.on.gates.health.set(200);
        let events = match error {
            NOTHING => Vec::new(),
            _ => scene.added(&["node", name]).await,
        };
        let stalled = Answer::Stall(events);
        scene.middle.respond_next(Verb::Watch, 1, stalled);
        let start = Instant::now();
        let agent = scene.on.agent(&[]);
        scene.on.wait_for_taints(&[]).await;
        assert!(start.elapsed() < BOUND, "{:?}", start.elapsed());
        warned(&agent, NODE_FAILED, error).await;
        // The agent remembers it.
        scene.middle.end_watches();
        agent.wait_for_count("watching the Node", 1).await.unwrap();
        scene.on.cluster.set_taints(name, &[TAINT]).await.unwrap();
        scene.on.wait_for_taints(&[]).await;
        let asked = scene.asked("/api/v1/nodes");
        let expected = ["streaming list", "list", "watch", "list", "watch"];
        assert_eq!(asked, expected);
    }
}

/// A proxy that holds back the body of every watch still passes lists on.
#[tokio::test]
async fn a_watch_after_such_a_list_is_believed_only_once_its_events_arrive() {
    let Some(scene) = Scene::new("silent-twice", &[READY]).await else {
        return;
    };
    scene.set_ready("True").await;
    scene
        .middle
        .respond_next(Verb::Watch, 2, Answer::Stall(Vec::new()));
    let agent = scene.on.agent(&[]);
    let listed = ["streaming list", "list", "watch"];
    let second = async {
        while scene.asked("/api/v1/nodes") != listed {
            tokio::task::yield_now().await;
        }
    };
    timeout(BOUND, second).await.unwrap();
    scene.set_ready("False").await;
    scene.on.gates.health.set(200);
    said(&agent, "last", "open", "").await;
    said(&agent, "ready", "closed", "is False").await;
    assert_eq!(scene.on.taints().await, [TAINT]);
    let ready = |line: &Value| line["gate"] == "ready" && line["state"] == "open";
    assert!(!agent.logs().iter().any(ready), "by what was listed");
    scene.set_ready("True").await;
    scene.on.wait_for_taints(&[]).await;
}

#[tokio::test]
async fn a_node_watch_that_is_silent_at_a_renewal_leaves_nothing_to_be_decided_on_old_knowledge() {
    if !objects_come_first().await {
        return;
    }
    let Some(scene) = Scene::new("silent-renewal", &[READY]).await else {
        return;
    };
    scene.set_ready("True").await;
    let mut agent = scene.on.agent(&["--listen", "127.0.0.1:0"]);
    said(&agent, "ready", "open", "is True").await;
    let stalled = Answer::Stall(Vec::new());
    scene.middle.respond_next(Verb::Watch, 1, stalled);
    let is_unknown = |line: &&Value| line["gate"] == "ready" && line["state"] == "unknown";
    let count = |agent: &Agent| agent.logs().iter().filter(is_unknown).count();
    let before = count(&agent);
    let renewed = Instant::now();
    scene.middle.end_watches();
    let outdated = async {
        while count(&agent) == before {
            agent.next_log().await.unwrap();
        }
    };
    timeout(OUTDATED, outdated).await.unwrap();
    assert_eq!(agent.status().await.unwrap()["api"]["watching"], false);
    scene.set_ready("False").await;
    scene.on.gates.health.set(200);
    said(&agent, "last", "open", "").await;
    warned(&agent, NODE_FAILED, NOTHING).await;
    agent
        .wait_for_message("the watch of the Node works again")
        .await
        .unwrap();
    assert!(renewed.elapsed() < BOUND, "{:?}", renewed.elapsed());
    assert_eq!(scene.on.taints().await, [TAINT]);
    scene.set_ready("True").await;
    scene.on.wait_for_taints(&[]).await;
}

#[tokio::test]
async fn a_gates_watch_without_its_initial_events_is_given_up_for_a_list_and_a_watch() {
    if !objects_come_first().await {
        return;
    }
    for (name, error) in [("silent-gates", NOTHING), ("unended-gates", NO_BOOKMARK)] {
        let Some(scene) = Scene::new(name, &[DRIVER, DAEMON]).await else {
            return;
        };
        let (cluster, pod) = (scene.on.cluster, ["--namespace", "silent", "pod", name]);
        grant(cluster, CSI_NODES, ["watch", "csinodes"], "default").await;
        if cluster
            .kubectl(&["get", "namespace", "silent"])
            .await
            .is_err()
        {
            kubectl(cluster, &["create", "namespace", "silent"]).await;
        }
        let rules = PODS.replace("observed", "silent");
        grant(cluster, &rules, ["watch", "pods"], "silent").await;
        register(cluster, &scene.on.gates, name, &ebs(Some(25))).await;
        apply(cluster, &scene.on.gates, &ready_pod(name)).await;
        let ready = json!({"conditions": [{"type": "Ready", "status": "True"}]});
        set_status(cluster, &pod, &ready).await;
        let (csi_node, daemon) = match error {
            NOTHING => (Vec::new(), Vec::new()),
            _ => (
                scene.added(&["csinode", name]).await,
                scene.added(&pod).await,
            ),
        };
        let stalled = Answer::Stall(csi_node);
        scene
            .middle
            .respond_next_to(Verb::Watch, "/csinodes", 1, stalled);
        // The man in the middle does not know pods.
        let stalled = Answer::Stall(daemon);
        scene
            .middle
            .respond_next_to(Verb::Other, "/pods", 1, stalled);
        scene.on.gates.health.set(200);
        let start = Instant::now();
        let agent = scene.on.agent(&[]);
        for path in [
            "/apis/storage.k8s.io/v1/csinodes",
            "/api/v1/namespaces/silent/pods",
        ] {
            let is_it = |line: &Value| {
                let said = line["error"].as_str().unwrap_or_default();
                line["message"] == GATE_FAILED && line["path"] == path && said.contains(error)
            };
            agent.wait_for_log(is_it).await.unwrap();
        }
        scene.on.wait_for_taints(&[]).await;
        assert!(start.elapsed() < BOUND, "{:?}", start.elapsed());
        assert_eq!(agent.count(GATE_FAILED), 2);
    }
}

#[tokio::test]
async fn a_gates_watch_that_is_silent_at_a_renewal_makes_the_gate_unknown_before_it_is_judged_anew()
{
    if !objects_come_first().await {
        return;
    }
    let Some(scene) = Scene::new("silent-gate-renewal", &[DRIVER]).await else {
        return;
    };
    let cluster = scene.on.cluster;
    grant(cluster, CSI_NODES, ["watch", "csinodes"], "default").await;
    register(cluster, &scene.on.gates, scene.on.name, &ebs(Some(25))).await;
    let agent = scene.on.agent(&[]);
    said(&agent, "driver", "open", "allows 25 volumes").await;
    let stalled = Answer::Stall(Vec::new());
    scene
        .middle
        .respond_next_to(Verb::Watch, "/csinodes", 1, stalled);
    let renewed = Instant::now();
    scene.middle.end_watches();
    let outdated = "the next watch has not started yet";
    said(&agent, "driver", "unknown", outdated).await;
    assert!(renewed.elapsed() < OUTDATED, "{:?}", renewed.elapsed());
    register(cluster, &scene.on.gates, scene.on.name, &json!([])).await;
    scene.on.gates.health.set(200);
    said(&agent, "driver", "closed", "registered: none").await;
    assert!(renewed.elapsed() < BOUND, "{:?}", renewed.elapsed());
    warned(&agent, GATE_FAILED, NOTHING).await;
    assert_eq!(scene.on.taints().await, [TAINT]);
    register(cluster, &scene.on.gates, scene.on.name, &ebs(Some(26))).await;
    scene.on.wait_for_taints(&[]).await;
}

fn ready_pod(node: &str) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": node, "namespace": "silent", "labels": {"app": "a"}},
        "spec": {"nodeName": node, "containers": [{"name": "a", "image": "example.com/a"}]},
    })
}
