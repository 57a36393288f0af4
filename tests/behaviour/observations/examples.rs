//! Examples whose gates read the API, on a Node that becomes ready step by step.

use std::os::unix::net::UnixListener;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::{CSI_NODES, apply, ebs, kubectl, register, said, set_status};
use crate::scene::{Gates, OnCluster, grant};

/// A Node with this taint, for an agent with the example. Its text is changed by `change`.
async fn example(
    name: &str,
    node: &'static str,
    taint: &str,
    change: impl Fn(&str, &Gates) -> String,
) -> Option<OnCluster> {
    let gates = Gates::closed().await;
    let text = std::fs::read_to_string(format!("examples/{name}.yaml")).unwrap();
    std::fs::write(gates.config(), change(&text, &gates)).unwrap();
    OnCluster::with(node, &[taint], gates).await
}

/// ebs-csi#1945: the scheduler can see the removal before the limit.
#[tokio::test]
async fn with_the_example_for_ebs_the_scheduler_has_a_second_to_see_the_limit_of_volumes() {
    let taint = "ebs.csi.aws.com/agent-not-ready:NoExecute";
    let as_it_is = |text: &str, _: &Gates| text.to_owned();
    let Some(scene) = example("ebs-csi", "example-ebs", taint, as_it_is).await else {
        return;
    };
    grant(scene.cluster, CSI_NODES, ["watch", "csinodes"], "default").await;
    register(scene.cluster, &scene.gates, scene.name, &json!([])).await;
    let agent = scene.agent(&[]);
    said(&agent, "driver", "closed", "registered: none").await;
    assert_eq!(scene.taints().await, [taint]);
    let before = Instant::now();
    register(scene.cluster, &scene.gates, scene.name, &ebs(Some(25))).await;
    scene.wait_for_taints(&[]).await;
    assert!(before.elapsed() >= Duration::from_secs(1));
}

#[tokio::test]
async fn with_the_example_for_secrets_the_taint_waits_for_the_driver_its_provider_and_the_socket() {
    let taint = "startup-taint.cluster-autoscaler.kubernetes.io/secrets-store-not-ready:NoSchedule";
    let directory = "/var/run/secrets-store-csi-providers";
    let elsewhere = |text: &str, gates: &Gates| {
        assert!(text.contains(directory), "{text}");
        text.replace(directory, gates.dir.path().to_str().unwrap())
    };
    let Some(scene) = example("secrets-store", "example-secrets", taint, elsewhere).await else {
        return;
    };
    let cluster = scene.cluster;
    let pods = "- {name: a, taint: {key: a}, gates: [{name: a, pods: {namespace: kube-system, matchLabels: {app: a}}}]}\n";
    grant(cluster, CSI_NODES, ["watch", "csinodes"], "default").await;
    grant(cluster, pods, ["watch", "pods"], "kube-system").await;
    register(cluster, &scene.gates, scene.name, &json!([])).await;
    let agent = scene.agent(&[]);
    for gate in ["driver", "provider", "socket"] {
        said(&agent, gate, "closed", "").await;
    }
    let driver = json!([{"name": "secrets-store.csi.k8s.io", "nodeID": "i-1", "topologyKeys": []}]);
    register(cluster, &scene.gates, scene.name, &driver).await;
    said(&agent, "driver", "open", "").await;
    let pod = json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": "example-provider",
            "namespace": "kube-system",
            "labels": {"app": "csi-secrets-store-provider-aws"},
        },
        "spec": {"nodeName": scene.name, "containers": [{"name": "a", "image": "example.com/a"}]},
    });
    apply(cluster, &scene.gates, &pod).await;
    let status = json!({"conditions": [{"type": "Ready", "status": "True"}]});
    let object = ["--namespace", "kube-system", "pod", "example-provider"];
    set_status(cluster, &object, &status).await;
    said(&agent, "provider", "open", "").await;
    assert_eq!(scene.taints().await, [taint]);
    let _provider = UnixListener::bind(scene.gates.dir.path().join("aws.sock")).unwrap();
    scene.wait_for_taints(&[]).await;
}

/// kata-containers#13284: the label is the last step of the installation.
#[tokio::test]
async fn with_the_example_for_kata_the_taint_waits_for_the_label_and_the_kubelet() {
    let taint = "startup-taint.cluster-autoscaler.kubernetes.io/kata-not-ready:NoSchedule";
    let as_it_is = |text: &str, _: &Gates| text.to_owned();
    let Some(scene) = example("kata", "example-kata", taint, as_it_is).await else {
        return;
    };
    let cluster = scene.cluster;
    let label = async |label: &str| {
        let change = ["label", "--overwrite", "node", scene.name, label];
        kubectl(cluster, &change).await;
    };
    let ready = async |status: &str| {
        let condition: Value =
            json!({"type": "Ready", "status": status, "reason": "Kubelet", "message": ""});
        let status = json!({"conditions": [condition]});
        set_status(cluster, &["node", scene.name], &status).await;
    };
    label("example.com/sandbox=kata").await;
    ready("True").await;
    let agent = scene.agent(&[]);
    said(
        &agent,
        "installed",
        "closed",
        "has no label katacontainers.io/kata-runtime",
    )
    .await;
    said(&agent, "node", "open", "").await;
    // The container runtime restarts.
    ready("False").await;
    said(&agent, "node", "closed", "is False, not True").await;
    label("katacontainers.io/kata-runtime=true").await;
    said(&agent, "installed", "open", "").await;
    assert_eq!(scene.taints().await, [taint]);
    ready("True").await;
    scene.wait_for_taints(&[]).await;
}
