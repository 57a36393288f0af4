//! A missing permission, an unreachable API server, and objects that were deleted.

use std::process::Command;

use serde_json::json;
use testkit::cluster::{self, Cluster};
use testkit::kubeconfig::point_at;
use testkit::proxy::{FaultProxy, Mode};
use testkit::{DEADLINE, taints};
use tokio::time::timeout;

use super::{
    CSI_NODES, DRIVER, GPUS, READY, ebs, gates, kubectl, register, requests, said, set_status,
};
use crate::scene::{OnCluster, PROGRAM, TAINT, beginning, grant};

/// The number of watches of CSINodes that the server serves now.
async fn csi_node_watches(cluster: &Cluster) -> u32 {
    let metrics = kubectl(cluster, &["get", "--raw", "/metrics"]).await;
    let lines = metrics.lines().filter(|line| {
        line.starts_with("apiserver_longrunning_requests{")
            && line.contains(r#"resource="csinodes""#)
            && line.contains(r#"verb="WATCH""#)
    });
    lines
        .filter_map(|line| line.rsplit(' ').next()?.parse::<u32>().ok())
        .sum()
}

#[tokio::test]
async fn the_csi_node_is_watched_with_a_permission_of_its_own_and_only_while_the_taint_is_there() {
    let Some(cluster) = cluster::fresh(&[]).await else {
        return;
    };
    let gates = gates(&[DRIVER]).await;
    gates.health.set(200);
    let kubeconfig = gates.tainted_node(&cluster, "node", &[TAINT]).await;
    let mut agent = gates.agent("node", &kubeconfig, &[]);
    let missing = r#"resource "csinodes" in API group "storage.k8s.io" at the cluster scope"#;
    let missing = format!("cannot {} {missing}", beginning().await);
    said(&agent, "driver", "unknown", &missing).await;
    grant(&cluster, CSI_NODES, ["watch", "csinodes"], "default").await;
    said(&agent, "driver", "closed", "no CSINode").await;
    assert!(!agent.has_ended().unwrap());
    // Each read takes some time.
    let watches = async |count| while csi_node_watches(&cluster).await != count {};
    timeout(DEADLINE, watches(1)).await.unwrap();
    assert_eq!(taints(&cluster.node("node").await.unwrap())[0], TAINT);

    register(&cluster, &gates, "node", &ebs(Some(25))).await;
    agent.wait_for_message("removed the taint").await.unwrap();
    timeout(DEADLINE, watches(0)).await.unwrap();

    cluster.set_taints("node", &[TAINT]).await.unwrap();
    agent.wait_for_count("removed the taint", 2).await.unwrap();
}

#[tokio::test]
async fn a_node_without_the_taint_costs_no_watch_but_its_own() {
    let Some(scene) = OnCluster::with("untainted", &[], gates(&[DRIVER]).await).await else {
        return;
    };
    grant(scene.cluster, CSI_NODES, ["watch", "csinodes"], "default").await;
    let agent = scene.agent(&[]);
    agent.wait_for_message("watching the Node").await.unwrap();
    let label = json!({"metadata": {"labels": {"a": "b"}}});
    scene.cluster.patch_node(scene.name, &label).await.unwrap();
    agent.wait_for_count("saw the Node", 2).await.unwrap();
    assert_eq!(requests(&scene).await, ["watch /api/v1/nodes"]);
}

#[tokio::test]
async fn while_the_api_server_is_away_these_gates_are_unknown_and_nothing_is_removed_on_old_knowledge()
 {
    let gates = gates(&[DRIVER, GPUS, READY]).await;
    let Some(scene) = OnCluster::with("away", &[TAINT], gates).await else {
        return;
    };
    let (cluster, node) = (scene.cluster, ["node", scene.name]);
    grant(cluster, CSI_NODES, ["watch", "csinodes"], "default").await;
    let proxy = FaultProxy::start(cluster.address()).await.unwrap();
    point_at(&scene.kubeconfig, proxy.address()).unwrap();
    let status = |gpus: &str| {
        let ready = json!({"type": "Ready", "status": "True"});
        json!({"allocatable": {"nvidia.com/gpu": gpus}, "conditions": [ready]})
    };
    set_status(cluster, &node, &status("8")).await;
    register(cluster, &scene.gates, scene.name, &ebs(Some(25))).await;
    let agent = scene.agent(&[]);
    for gate in ["driver", "gpus", "ready"] {
        said(&agent, gate, "open", "").await;
    }

    proxy.set(Mode::Refuse);
    proxy.reset_connections();
    for gate in ["driver", "gpus", "ready"] {
        said(&agent, gate, "unknown", "untaint cannot watch the Node now").await;
    }
    set_status(cluster, &node, &status("0")).await;
    register(cluster, &scene.gates, scene.name, &json!([])).await;
    scene.gates.health.set(200);
    said(&agent, "last", "open", "").await;
    proxy.set(Mode::Pass);
    said(&agent, "driver", "closed", "registered: none").await;
    said(&agent, "gpus", "closed", "is 0").await;
    assert_eq!(scene.taints().await, [TAINT]);
    let requests = requests(&scene).await;
    assert!(
        requests.iter().all(|it| it.starts_with("watch ")),
        "{requests:?}"
    );

    set_status(cluster, &node, &status("9")).await;
    register(cluster, &scene.gates, scene.name, &ebs(Some(25))).await;
    scene.wait_for_taints(&[]).await;
}

#[tokio::test]
async fn a_check_reports_these_gates_as_unknown_and_says_why() {
    let pods = "{name: daemon, pods: {namespace: kube-system, matchLabels: {a: b}}}";
    let gates = gates(&[DRIVER, GPUS, READY, pods]).await;
    gates.health.set(200);
    let mut command = Command::new(PROGRAM);
    command.arg("check").arg("--config").arg(gates.config());
    let output = tokio::task::spawn_blocking(move || command.output().unwrap())
        .await
        .unwrap();
    assert_eq!(output.status.code(), Some(3));
    let table = String::from_utf8(output.stdout).unwrap();
    for gate in ["driver", "gpus", "ready", "daemon"] {
        let is_its_row = |line: &str| {
            line.contains(gate)
                && line.contains("unknown")
                && line.contains("this gate needs the API server")
        };
        assert!(table.lines().any(is_its_row), "{gate}: {table}");
    }
}
