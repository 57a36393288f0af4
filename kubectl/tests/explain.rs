//! `kubectl untaint explain` against a real API server.

use std::path::Path;
use std::process::{Command, Output};

use serde_json::{Value, json};
use testkit::cluster::{AuditEntry, Cluster, fresh, shared};
use untaint::config::{self, SourceFile};
use untaint::manifests::{Account, Additions, Form, Manifests, Part, Tenants};

const CONFIGURATION: &str = "apiVersion: untaint/v1alpha1
kind: UntaintConfiguration
events: true
rules:
- name: network
  taint: {key: example.com/network}
  gates: [{name: agent, httpGet: {port: 1, path: /}}]
  publishCondition: {type: example.com/NetworkReady}
- name: gpu
  taint: {key: example.com/gpu}
  nodeSelector: {pool: gpu}
  gates: [{name: gpus, allocatable: {resource: example.com/gpu}}]
";
/// As Karpenter's own, without what nobody here needs.
const KARPENTER: &str = "
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: nodeclaims.karpenter.sh}
spec:
  group: karpenter.sh
  scope: Cluster
  names: {kind: NodeClaim, plural: nodeclaims, singular: nodeclaim}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
";
const MANY: usize = 2000;

/// Installs untaint, and returns the name of its ConfigMap.
async fn install(cluster: &Cluster) -> String {
    let file = SourceFile {
        name: "config.yaml".into(),
        text: CONFIGURATION.into(),
    };
    let manifests = Manifests {
        configuration: config::parse(CONFIGURATION).unwrap(),
        files: vec![file],
        form: Form::Daemonset,
        account: Account {
            namespace: "untaint".into(),
            name: "untaint".into(),
        },
        image: "untaint".into(),
        exact_tolerations: false,
        selinux_type: None,
        check_node_uid: false,
        strict_policy: false,
        tenants: Tenants::default(),
        taint_new_nodes: None,
        additions: Additions::default(),
    };
    let yaml = manifests.render(&[Part::Config, Part::Workload]).unwrap();
    cluster.apply(&yaml).await.unwrap();
    let get = ["get", "configmaps", "--namespace=untaint", "--output=name"];
    let names = cluster.kubectl(&get).await.unwrap();
    let map = names
        .lines()
        .find_map(|name| name.strip_prefix("configmap/untaint-"));
    format!("untaint-{}", map.unwrap())
}

fn run(kubeconfig: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_kubectl-untaint"))
        .arg("explain")
        .args(arguments)
        .arg("--kubeconfig")
        .arg(kubeconfig)
        .output()
        .unwrap()
}

fn explained(cluster: &Cluster, arguments: &[&str]) -> String {
    let output = run(&cluster.admin_kubeconfig(), arguments);
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{said}");
    String::from_utf8(output.stdout).unwrap()
}

/// A Node with these taints, labels and conditions.
async fn node(cluster: &Cluster, name: &str, taints: &[&str], labels: &Value, conditions: &Value) {
    cluster.create_node(name, taints).await.unwrap();
    // The API server has added node.kubernetes.io/not-ready, which no controller removes here.
    cluster.set_taints(name, taints).await.unwrap();
    let labels = json!({"metadata": {"labels": labels}});
    cluster.patch_node(name, &labels).await.unwrap();
    patch_status(
        cluster,
        &["node", name],
        &json!({"status": {"conditions": conditions}}),
    )
    .await;
}

async fn patch_status(cluster: &Cluster, object: &[&str], status: &Value) {
    let patch = status.to_string();
    let options = ["--subresource=status", "--type=merge", "--patch", &patch];
    let words = [&["patch"], object, &options].concat();
    cluster.kubectl(&words).await.unwrap();
}

/// The pod of untaint on a node, whose container is in this state.
async fn pod(cluster: &Cluster, node: &str, map: &str, state: &Value) {
    let pod = json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": format!("untaint-{node}"),
            "namespace": "untaint",
            "labels": {"app.kubernetes.io/name": "untaint"},
        },
        "spec": {
            "nodeName": node,
            "serviceAccountName": "untaint",
            "containers": [{"name": "untaint", "image": "untaint"}],
            "volumes": [{"name": "untaint-config", "configMap": {"name": map}}],
        },
    });
    cluster.apply(&pod.to_string()).await.unwrap();
    let is_running = state.get("running").is_some();
    let phase = if is_running { "Running" } else { "Pending" };
    let container = json!({
        "name": "untaint", "image": "untaint", "imageID": "", "ready": is_running, "restartCount": 0, "state": state,
    });
    let status = json!({"status": {"phase": phase, "containerStatuses": [container]}});
    let object = ["pod", &format!("untaint-{node}"), "--namespace=untaint"];
    patch_status(cluster, &object, &status).await;
}

/// Nodes in different states, each with the name of its state.
async fn create_nodes(cluster: &Cluster, map: &str) {
    let ready = || json!([{"type": "Ready", "status": "True"}]);
    let none = json!({});
    let running = json!({"running": {}});
    let network = ["example.com/network:NoExecute"];

    let message = "container runtime network not ready: NetworkReady=false reason:NetworkPluginNotReady message:x";
    let conditions = json!([{"type": "Ready", "status": "False", "reason": "KubeletNotReady", "message": message}]);
    node(
        cluster,
        "no-cni",
        &["node.kubernetes.io/not-ready:NoSchedule"],
        &none,
        &conditions,
    )
    .await;

    let message = "Kubelet stopped posting node status.";
    let conditions = json!([{"type": "Ready", "status": "Unknown", "reason": "NodeStatusUnknown", "message": message}]);
    node(
        cluster,
        "silent",
        &["node.kubernetes.io/unreachable:NoSchedule"],
        &none,
        &conditions,
    )
    .await;

    let conditions = json!([
        {"type": "Ready", "status": "True"},
        {"type": "example.com/NetworkReady", "status": "False", "reason": "GatesClosed", "message": "agent: 503"},
    ]);
    node(cluster, "closed", &network, &none, &conditions).await;
    pod(cluster, "closed", map, &running).await;

    node(cluster, "told", &network, &none, &ready()).await;
    pod(cluster, "told", map, &running).await;

    node(cluster, "unpullable", &network, &none, &ready()).await;
    let waiting = json!({"waiting": {"reason": "ImagePullBackOff"}});
    pod(cluster, "unpullable", map, &waiting).await;

    node(cluster, "alone", &network, &none, &ready()).await;
    let windows = json!({"kubernetes.io/os": "windows"});
    node(cluster, "unselected", &network, &windows, &ready()).await;
    node(
        cluster,
        "no-pool",
        &["example.com/gpu:NoSchedule"],
        &none,
        &ready(),
    )
    .await;
    node(
        cluster,
        "cordoned",
        &["node.kubernetes.io/unschedulable:NoSchedule"],
        &none,
        &ready(),
    )
    .await;
    node(
        cluster,
        "foreign",
        &["node.cilium.io/agent-not-ready:NoExecute"],
        &none,
        &ready(),
    )
    .await;
    node(
        cluster,
        "unknown",
        &["example.com/whatever=x:NoSchedule"],
        &none,
        &ready(),
    )
    .await;
    node(
        cluster,
        "good",
        &["example.com/soft:PreferNoSchedule"],
        &none,
        &ready(),
    )
    .await;

    // DaemonSets select Linux nodes.
    let linux = json!({"metadata": {"labels": {"kubernetes.io/os": "linux"}}});
    cluster.patch_node("alone", &linux).await.unwrap();
}

/// What untaint has written about the node `told`.
async fn create_event(cluster: &Cluster) {
    let uid = cluster.node("told").await.unwrap()["metadata"]["uid"].clone();
    let event = json!({
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": {"name": "told", "namespace": "default"},
        "eventTime": "2026-01-01T00:00:00.000000Z",
        "reportingController": "untaint",
        "reportingInstance": "told",
        "action": "WaitForGates",
        "reason": "DeadlineExceeded",
        "type": "Warning",
        "regarding": {"apiVersion": "v1", "kind": "Node", "name": "told", "uid": uid},
        "note": "The taint is there (rule network); agent: connection refused",
    });
    cluster.apply(&event.to_string()).await.unwrap();
}

/// A node of Karpenter, whose start-up taint is by mistake under `taints`.
async fn create_claim(cluster: &Cluster, map: &str) {
    cluster.apply(KARPENTER).await.unwrap();
    let established = [
        "wait",
        "--for=condition=Established",
        "crd/nodeclaims.karpenter.sh",
    ];
    cluster.kubectl(&established).await.unwrap();
    node(
        cluster,
        "claimed",
        &["example.com/network:NoExecute"],
        &json!({}),
        &json!([{"type": "Ready", "status": "True"}]),
    )
    .await;
    pod(cluster, "claimed", map, &json!({"running": {}})).await;
    let claim = json!({
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodeClaim",
        "metadata": {"name": "claim", "labels": {"karpenter.sh/nodepool": "pool"}},
        "spec": {"taints": [{"key": "example.com/network", "effect": "NoExecute"}]},
        "status": {"nodeName": "claimed", "conditions": [{"type": "Registered", "status": "True"}]},
    });
    cluster.apply(&claim.to_string()).await.unwrap();
}

#[tokio::test]
async fn each_state_of_a_node_has_its_reason_and_the_next_step() {
    let Some(cluster) = shared().await else {
        return;
    };
    let map = install(cluster).await;
    create_nodes(cluster, &map).await;
    create_event(cluster).await;
    create_claim(cluster, &map).await;
    for (node, expected) in [
        (
            "no-cni",
            &[
                "no-cni: the container runtime has no CNI configuration that it can use",
                "removed by  the node lifecycle controller, when the kubelet reports Ready",
                "next        see the pod of the CNI plugin on the node",
            ][..],
        ),
        (
            "silent",
            &[
                "silent: the kubelet does not report any more",
                "see whether the machine runs",
            ],
        ),
        (
            "closed",
            &[
                "closed: rule network waits",
                "removed by  untaint, rule network (pod untaint/untaint-closed)",
                "why         the condition example.com/NetworkReady is False: GatesClosed: agent: 503",
                // No kubelet runs here.
                "not read: /statusz of the pod untaint/untaint-closed, by port-forward: ",
            ],
        ),
        (
            "told",
            &[
                "why         the Event DeadlineExceeded: The taint is there (rule network); agent: connection refused",
            ],
        ),
        (
            "unpullable",
            &[
                "unpullable: the container of untaint does not run: ImagePullBackOff",
                "next        see whether the node can pull the image",
            ],
        ),
        (
            "alone",
            &["alone: rule network: no pod of untaint with this rule runs on the node"],
        ),
        (
            "unselected",
            &["unselected: rule network: the DaemonSet of untaint does not select the node"],
        ),
        (
            "no-pool",
            &["removed by  nobody on this node: nodeSelector of the rule gpu does not select it"],
        ),
        (
            "cordoned",
            &["when the Node is uncordoned", "kubectl uncordon"],
        ),
        (
            "foreign",
            &["removed by  the Cilium operator, unless operator.removeNodeTaints is false"],
        ),
        (
            "unknown",
            &[
                "removed by  nobody that is known: no rule of untaint names it",
                "example.com/whatever=x:NoSchedule",
            ],
        ),
        ("good", &["good: nothing keeps ordinary pods away"]),
        (
            "claimed",
            &[
                "the NodePool pool lists this taint under taints",
                "next        move the taint to startupTaints of the NodePool",
                "yes         the NodeClaim is registered",
                "no          Karpenter has initialized the node: not yet",
            ],
        ),
    ] {
        let found = explained(cluster, &[node]);
        for text in expected {
            assert!(found.contains(text), "{node}: no {text:?} in\n{found}");
        }
        let found: Value =
            serde_json::from_str(&explained(cluster, &[node, "--output=json"])).unwrap();
        assert_eq!(found["nodes"][0]["node"], node);
        assert_eq!(found["nodes"][0]["reason"].is_null(), node == "good");
    }
    of_many_nodes(cluster).await;
}

/// With 2,000 more nodes.
async fn of_many_nodes(cluster: &Cluster) {
    let nodes: Vec<Value> = (0..MANY)
        .map(|index| {
            testkit::node(
                &format!("many-{index}"),
                &["example.com/network:NoSchedule"],
            )
        })
        .collect();
    let list = json!({"apiVersion": "v1", "kind": "List", "items": nodes}).to_string();
    let file = cluster.directory().join("nodes.json");
    std::fs::write(&file, list).unwrap();
    let create = ["create", "--filename", file.to_str().unwrap()];
    cluster.kubectl(&create).await.unwrap();
    let count = async || {
        let is_of_this_program = |entry: &AuditEntry| entry.verb == "list" || entry.verb == "get";
        cluster.requests(is_of_this_program).await.unwrap().len()
    };
    let before = count().await;
    let start = std::time::Instant::now();
    let found = explained(cluster, &["--all"]);
    println!(
        "{MANY} nodes: {:?}, {} requests",
        start.elapsed(),
        count().await - before
    );
    assert!(
        found.starts_with("2013 nodes, of which 2012 do not take ordinary pods\n  20"),
        "{found}"
    );
    assert!(found.contains("rule network: "), "{found}");
    assert!(count().await - before <= 20);
}

#[tokio::test]
async fn a_node_that_is_not_there_and_a_missing_permission_are_named() {
    // The requests to the other one are counted.
    let Some(cluster) = fresh(&[]).await else {
        return;
    };
    install(&cluster).await;
    let output = run(&cluster.admin_kubeconfig(), &["nowhere"]);
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(!output.status.success());
    assert!(said.contains(r#"nodes "nowhere" not found"#), "{said}");

    let output = run(&cluster.admin_kubeconfig(), &["node/nowhere"]);
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("is not the name of a Node"), "{said}");

    let role = r#"
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: reader}
rules: [{apiGroups: [""], resources: [nodes], verbs: [get, list]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: reader}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: reader}
subjects: [{kind: ServiceAccount, name: untaint, namespace: untaint}]
"#;
    cluster.apply(role).await.unwrap();
    cluster
        .create_node("visible", &["example.com/network:NoSchedule"])
        .await
        .unwrap();
    let token = cluster.token("untaint", "untaint").await.unwrap();
    let directory = tempfile::tempdir().unwrap();
    let kubeconfig = cluster.kubeconfig(directory.path(), &token).unwrap();
    let read = async {
        loop {
            // A role takes effect some time after it is there.
            let output = run(&kubeconfig, &["visible"]);
            if output.status.success() {
                return String::from_utf8(output.stdout).unwrap();
            }
        }
    };
    let found = tokio::time::timeout(testkit::DEADLINE, read).await.unwrap();
    assert!(found.contains("not read: GET /api/v1/pods"), "{found}");
    assert!(found.contains("cannot list resource"), "{found}");
    assert!(
        found
            .contains("note: untaint is not installed in this cluster, or its pods cannot be read"),
        "{found}"
    );
}
