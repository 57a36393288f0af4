//! Gates that read the API.

mod daemon_sets;
mod examples;
mod missing;
mod overtaken;
mod quantities;
mod silence;
mod since_boot;
mod trouble;
mod urgency;

use serde_json::{Value, json};
use testkit::agent::Agent;
use testkit::cluster::Cluster;

use crate::scene::{Gates, OnCluster, TAINT, beginning, grant};

/// Rules with a gate for a CSINode, and for pods.
const CSI_NODES: &str =
    "- {name: a, taint: {key: a}, gates: [{name: a, csiDriver: {name: ebs.csi.aws.com}}]}\n";
const PODS: &str = "- {name: a, taint: {key: a}, gates: [{name: a, pods: {namespace: observed, matchLabels: {app: a}}}]}\n";
const DRIVER: &str = "{name: driver, csiDriver: {name: ebs.csi.aws.com, allocatable: true}}";
const LABEL: &str = "{name: kata, nodeLabel: {key: example.com/kata, value: \"true\"}}";
const GPUS: &str = "{name: gpus, allocatable: {resource: nvidia.com/gpu}}";
const READY: &str = "{name: ready, nodeCondition: {type: Ready}}";

/// A rule with these gates and the gate `last`, which is closed and keeps the taint until the test opens it.
async fn gates(observed: &[&str]) -> Gates {
    let gates = Gates::closed().await;
    let last = format!(
        "{{name: last, httpGet: {{port: {}, path: /healthz}}, periodSeconds: 0.05}}",
        gates.health.port()
    );
    let all = [observed, &[last.as_str()]].concat().join("\n  - ");
    gates.configure(&format!(
        "- name: a\n  taint: {{key: example.com/not-ready}}\n  gates:\n  - {all}\n"
    ));
    gates
}

/// Waits until this gate has had this state with a reason that starts like this.
async fn said(agent: &Agent, gate: &str, state: &str, reason: &str) {
    let is_it = |line: &Value| {
        let said = line["reason"].as_str().unwrap_or_default();
        line["gate"] == gate && line["state"] == state && said.contains(reason)
    };
    agent.wait_for_log(is_it).await.unwrap();
}

/// Creates or replaces an object.
async fn apply(cluster: &Cluster, gates: &Gates, object: &Value) {
    let file = gates.dir.path().join("object.json");
    std::fs::write(&file, object.to_string()).unwrap();
    kubectl(cluster, &["apply", "--filename", file.to_str().unwrap()]).await;
}

async fn kubectl(cluster: &Cluster, arguments: &[&str]) -> String {
    cluster.kubectl(arguments).await.unwrap()
}

/// Writes the CSINode with these drivers, as the kubelet does.
async fn register(cluster: &Cluster, gates: &Gates, node: &str, drivers: &Value) {
    let object = json!({
        "apiVersion": "storage.k8s.io/v1",
        "kind": "CSINode",
        "metadata": {"name": node},
        "spec": {"drivers": drivers},
    });
    apply(cluster, gates, &object).await;
}

fn ebs(count: Option<u32>) -> Value {
    let allocatable = count.map(|count| json!({"count": count}));
    json!([{"name": "ebs.csi.aws.com", "nodeID": "i-1", "topologyKeys": [], "allocatable": allocatable}])
}

async fn set_status(cluster: &Cluster, object: &[&str], status: &Value) {
    let patch = json!({"status": status}).to_string();
    let patch = ["--subresource=status", "--type=merge", "--patch", &patch];
    kubectl(cluster, &[&["patch"], object, &patch].concat()).await;
}

/// Opens the gate `last`, and waits until the taint is gone.
async fn open_last(scene: &OnCluster) {
    assert_eq!(scene.taints().await, [TAINT]);
    scene.gates.health.set(200);
    scene.wait_for_taints(&[]).await;
}

/// Verb and path of the agent's requests, without refused requests.
async fn requests(scene: &OnCluster) -> Vec<String> {
    let mut requests = scene.requests().await;
    requests.retain(|request| request.code == Some(200));
    let path = |uri: &str| uri.split('?').next().unwrap_or_default().to_owned();
    requests
        .iter()
        .map(|request| format!("{} {}", request.verb, path(&request.uri)))
        .collect()
}

/// efs-csi#1939 (B20): the taint must stay until the driver has registered.
#[tokio::test]
async fn a_csi_driver_opens_its_gate_once_it_has_registered_and_costs_one_watch() {
    let Some(scene) = OnCluster::with("csi", &[TAINT], gates(&[DRIVER]).await).await else {
        return;
    };
    grant(scene.cluster, CSI_NODES, ["watch", "csinodes"], "default").await;
    register(scene.cluster, &scene.gates, scene.name, &json!([])).await;
    let agent = scene.agent(&[]);
    said(&agent, "driver", "closed", "registered: none").await;
    let other = json!([{"name": "efs.csi.aws.com", "nodeID": "i-1", "topologyKeys": []}]);
    for (drivers, state, reason) in [
        (other, "closed", "registered: efs.csi.aws.com"),
        (ebs(None), "closed", "has no allocatable.count"),
        // In Kubernetes before 1.35, the entry of a driver cannot change, so the kubelet removes it first.
        (json!([]), "closed", "registered: none"),
        (ebs(Some(25)), "open", "allows 25 volumes"),
    ] {
        register(scene.cluster, &scene.gates, scene.name, &drivers).await;
        said(&agent, "driver", state, reason).await;
    }
    kubectl(scene.cluster, &["delete", "csinode", scene.name]).await;
    said(&agent, "driver", "closed", "no CSINode").await;
    register(scene.cluster, &scene.gates, scene.name, &ebs(Some(26))).await;
    said(&agent, "driver", "open", "allows 26 volumes").await;
    open_last(&scene).await;
    let expected = [
        "watch /api/v1/nodes",
        "watch /apis/storage.k8s.io/v1/csinodes",
        "patch /api/v1/nodes/csi",
    ];
    assert_eq!(requests(&scene).await, expected);
}

#[tokio::test]
async fn an_allocatable_resource_opens_its_gate_while_there_is_some_and_costs_no_request() {
    let Some(scene) = OnCluster::with("gpu", &[TAINT], gates(&[GPUS]).await).await else {
        return;
    };
    let agent = scene.agent(&[]);
    said(
        &agent,
        "gpus",
        "closed",
        "has no allocatable nvidia.com/gpu",
    )
    .await;
    for (quantity, state) in [("1", "open"), ("0", "closed"), ("2", "open")] {
        let status = json!({"allocatable": {"nvidia.com/gpu": quantity}});
        set_status(scene.cluster, &["node", scene.name], &status).await;
        said(&agent, "gpus", state, &format!("is {quantity}")).await;
    }
    open_last(&scene).await;
    let expected = ["watch /api/v1/nodes", "patch /api/v1/nodes/gpu"];
    assert_eq!(requests(&scene).await, expected);
}

#[tokio::test]
async fn a_node_label_opens_its_gate_with_the_wanted_value_and_costs_no_request() {
    let Some(scene) = OnCluster::with("label", &[TAINT], gates(&[LABEL]).await).await else {
        return;
    };
    let agent = scene.agent(&[]);
    said(&agent, "kata", "closed", "has no label example.com/kata").await;
    let label = async |value: &str| {
        let label = format!("example.com/kata={value}");
        let change = ["label", "--overwrite", "node", scene.name, &label];
        kubectl(scene.cluster, &change).await;
    };
    for (value, state, reason) in [
        ("cleanup", "closed", "is \"cleanup\", not \"true\""),
        ("true", "open", "is \"true\""),
        ("failed", "closed", "is \"failed\", not \"true\""),
    ] {
        label(value).await;
        said(&agent, "kata", state, reason).await;
    }
    label("true").await;
    open_last(&scene).await;
    let expected = ["watch /api/v1/nodes", "patch /api/v1/nodes/label"];
    assert_eq!(requests(&scene).await, expected);
}

#[tokio::test]
async fn a_node_condition_opens_its_gate_with_the_wanted_status_and_costs_no_request() {
    let Some(scene) = OnCluster::with("condition", &[TAINT], gates(&[READY]).await).await else {
        return;
    };
    let agent = scene.agent(&[]);
    said(&agent, "ready", "closed", "has no condition Ready").await;
    for (status, reason, state, message) in [
        (
            "False",
            "KubeletNotReady",
            "closed",
            "is False, not True: KubeletNotReady: words",
        ),
        ("True", "KubeletReady", "open", "is True"),
        (
            "Unknown",
            "NodeStatusUnknown",
            "closed",
            "is Unknown, not True: NodeStatusUnknown",
        ),
        ("True", "KubeletReady", "open", "is True"),
    ] {
        let condition =
            json!({"type": "Ready", "status": status, "reason": reason, "message": "words"});
        let status = json!({"conditions": [condition]});
        set_status(scene.cluster, &["node", scene.name], &status).await;
        said(&agent, "ready", state, message).await;
    }
    open_last(&scene).await;
    let expected = ["watch /api/v1/nodes", "patch /api/v1/nodes/condition"];
    assert_eq!(requests(&scene).await, expected);
}

#[tokio::test]
async fn a_ready_pod_opens_its_gate_where_the_role_is_granted_and_a_terminating_one_closes_it() {
    let pods = "{name: daemon, pods: {namespace: observed, matchLabels: {app: a}}}";
    let Some(scene) = OnCluster::with("pods", &[TAINT], gates(&[pods]).await).await else {
        return;
    };
    let cluster = scene.cluster;
    kubectl(cluster, &["create", "namespace", "observed"]).await;
    let mut agent = scene.agent(&[]);
    let missing = r#"resource "pods" in API group "" in the namespace "observed""#;
    let missing = format!("cannot {} {missing}", beginning().await);
    said(&agent, "daemon", "unknown", &missing).await;
    let expected = "failed to watch for a gate; trying again";
    agent.wait_for_message(expected).await.unwrap();
    grant(cluster, PODS, ["watch", "pods"], "observed").await;
    said(&agent, "daemon", "closed", "no pod matches the labels").await;
    assert!(!agent.has_ended().unwrap());
    assert_eq!(agent.count(expected), 1);

    let pod = |name: &str, node: &str, app: &str| {
        json!({
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": name, "namespace": "observed", "labels": {"app": app}},
            "spec": {"nodeName": node, "containers": [{"name": "a", "image": "example.com/a"}]},
        })
    };
    let ready = json!({"conditions": [{"type": "Ready", "status": "True"}]});
    let object = |name| ["--namespace", "observed", "pod", name];
    // These pods are ready, but on another node or with another label.
    for (name, node, app) in [("elsewhere", "other", "a"), ("other", scene.name, "b")] {
        apply(cluster, &scene.gates, &pod(name, node, app)).await;
        set_status(cluster, &object(name), &ready).await;
    }
    apply(cluster, &scene.gates, &pod("first", scene.name, "a")).await;
    said(&agent, "daemon", "closed", ": 1 not ready").await;
    set_status(cluster, &object("first"), &ready).await;
    said(&agent, "daemon", "open", "is ready on this node").await;
    // No kubelet reports that the pod has ended.
    let delete = [&["delete", "--wait=false"], &object("first")[..]].concat();
    kubectl(cluster, &delete).await;
    said(&agent, "daemon", "closed", ": 1 terminating").await;
    apply(cluster, &scene.gates, &pod("second", scene.name, "a")).await;
    said(&agent, "daemon", "closed", ": 1 not ready, 1 terminating").await;
    set_status(cluster, &object("second"), &ready).await;
    open_last(&scene).await;
    let expected = [
        "watch /api/v1/nodes",
        "watch /api/v1/namespaces/observed/pods",
        "patch /api/v1/nodes/pods",
    ];
    assert_eq!(requests(&scene).await, expected);
}
