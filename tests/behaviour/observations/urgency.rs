//! The agent connects at once when the API server is back and the gates that do not need it are open.

use std::time::{Duration, Instant};

use serde_json::json;
use testkit::DEADLINE;
use testkit::agent::Agent;
use testkit::kubeconfig::point_at;
use testkit::proxy::{FaultProxy, Mode};
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::{
    CSI_NODES, DRIVER, GPUS, LABEL, PODS, READY, apply, ebs, gates, kubectl, register, said,
    set_status,
};
use crate::scene::{OnCluster, TAINT, grant};

const DAEMON: &str = "{name: daemon, pods: {namespace: urgent, matchLabels: {app: a}}}";
const GROUP: &str = "{name: group, anyOf: [{name: absent, file: {path: /absent/for/ever}}, {name: ready, nodeCondition: {type: Ready}}]}";
const AFTER: &str = "{name: after, after: [last], nodeCondition: {type: Ready}}";
const KINDS: [(&str, &str); 7] = [
    ("driver", DRIVER),
    ("gpus", GPUS),
    ("ready", READY),
    ("label", LABEL),
    ("daemon", DAEMON),
    ("group", GROUP),
    ("after", AFTER),
];
/// The longest time that counts as "at once" on a busy machine. Without urgency, the current wait takes 4 s to 30 s.
const AT_ONCE: Duration = Duration::from_secs(3);
/// After this number of failed tries, the waits are between 4 s and 16 s.
const TRIES: usize = 6;

const LISTEN: [&str; 2] = ["--listen", "127.0.0.1:0"];

/// Waits until so many tries have failed.
async fn fail(agent: &Agent, tries: usize) {
    let failed = async { while failures(agent).await < tries {} };
    timeout(DEADLINE, failed).await.unwrap();
}

/// The number of failed tries to watch so far, each with a watch or, without streaming lists, with a list.
async fn failures(agent: &Agent) -> usize {
    let (_, metrics) = agent.get("/metrics").await.unwrap();
    let count = |verb: &str| -> usize {
        let counter = format!(r#"untaint_api_requests_total{{verb="{verb}",code="error"}} "#);
        let mut lines = metrics.lines();
        let count = lines.find_map(|line| line.strip_prefix(&counter));
        count.unwrap().parse().unwrap()
    };
    count("watch") + count("list")
}

/// When the server becomes unreachable.
#[derive(Debug, Clone, Copy)]
enum Outage {
    /// Before the agent starts.
    Start,
    /// After the agent has seen the Node.
    Later,
}

/// A Node for which all these gates open, and a proxy to the server. The gate `last` is closed.
struct Scene {
    on: OnCluster,
    proxy: FaultProxy,
}

impl Scene {
    async fn new(name: &'static str, observed: &str) -> Option<Self> {
        let on = OnCluster::with(name, &[TAINT], gates(&[observed]).await).await?;
        let cluster = on.cluster;
        let proxy = FaultProxy::start(cluster.address()).await.unwrap();
        point_at(&on.kubeconfig, proxy.address()).unwrap();
        let ready = json!({"type": "Ready", "status": "True"});
        let status = json!({"allocatable": {"nvidia.com/gpu": "1"}, "conditions": [ready]});
        set_status(cluster, &["node", name], &status).await;
        kubectl(cluster, &["label", "node", name, "example.com/kata=true"]).await;
        register(cluster, &on.gates, name, &ebs(Some(25))).await;
        // Two tests can create it at the same time.
        let _ = cluster.kubectl(&["create", "namespace", "urgent"]).await;
        let pod = json!({
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": name, "namespace": "urgent", "labels": {"app": "a"}},
            "spec": {"nodeName": name, "containers": [{"name": "a", "image": "example.com/a"}]},
        });
        apply(cluster, &on.gates, &pod).await;
        let status = json!({"conditions": [ready]});
        set_status(cluster, &["--namespace", "urgent", "pod", name], &status).await;
        Some(Self { on, proxy })
    }

    async fn survive(&self, outage: Outage) -> Duration {
        let agent = match outage {
            Outage::Start => {
                self.proxy.set(Mode::Refuse);
                self.on.agent(&LISTEN)
            }
            Outage::Later => {
                let agent = self.on.agent(&LISTEN);
                agent.wait_for_message("watching the Node").await.unwrap();
                self.proxy.set(Mode::Refuse);
                self.proxy.reset_connections();
                agent
            }
        };
        fail(&agent, TRIES).await;
        let took = self.come_back().await;
        drop(agent);
        took
    }

    /// Makes the server reachable, opens the last gate, and returns the time until the removal.
    async fn come_back(&self) -> Duration {
        self.proxy.set(Mode::Pass);
        let opened = Instant::now();
        self.on.gates.health.set(200);
        self.on.wait_for_taints(&[]).await;
        opened.elapsed()
    }
}

/// The time of the removal after an outage, for each kind of gate. Each has its own Node, and all run at the same time.
async fn assert_at_once(outage: Outage) {
    let Some(cluster) = testkit::cluster::shared().await else {
        return;
    };
    grant(cluster, CSI_NODES, ["watch", "csinodes"], "default").await;
    let pods = PODS.replace("observed", "urgent");
    grant(cluster, &pods, ["watch", "pods"], "urgent").await;
    let mut rows = JoinSet::new();
    for (kind, gate) in KINDS {
        let name: &'static str = format!("{outage:?}-{kind}").to_lowercase().leak();
        let scene = Scene::new(name, gate).await.unwrap();
        rows.spawn(async move { (kind, scene.survive(outage).await) });
    }
    let took = rows.join_all().await;
    assert!(took.iter().all(|(_, took)| *took < AT_ONCE), "{took:?}");
}

#[tokio::test]
async fn at_a_start_without_the_api_server_it_is_asked_at_once_when_the_local_gates_open() {
    assert_at_once(Outage::Start).await;
}

#[tokio::test]
async fn after_an_outage_the_api_server_is_asked_at_once_when_the_local_gates_open() {
    assert_at_once(Outage::Later).await;
}

#[tokio::test]
async fn a_try_that_is_under_way_when_the_local_gates_open_is_followed_by_another_at_once() {
    let Some(Scene { on, proxy }) = Scene::new("under-way", READY).await else {
        return;
    };
    proxy.set(Mode::Refuse);
    let agent = on.agent(&LISTEN);
    fail(&agent, TRIES).await;
    proxy.set(Mode::BlackHole);
    let tries = proxy.connections() + 1;
    proxy.wait_for_connections(tries).await.unwrap();
    on.gates.health.set(200);
    said(&agent, "last", "open", "").await;
    proxy.set(Mode::Pass);
    let broken = Instant::now();
    proxy.reset_connections();
    on.wait_for_taints(&[]).await;
    // The first wait is half a second.
    let took = broken.elapsed();
    assert!(took < Duration::from_secs(2), "{took:?}");
}
