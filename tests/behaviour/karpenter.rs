//! Autoscalers. Karpenter restores start-up taints until it has registered the Node. cluster-autoscaler knows start-up
//! taints by their prefix.

use serde_json::json;

use crate::scene::{Gates, OnCluster, TAINT};

const UNREGISTERED: &str = "karpenter.sh/unregistered:NoExecute";

#[tokio::test]
async fn a_removal_is_held_until_karpenter_has_registered_the_node() {
    let Some(scene) =
        OnCluster::with("registers", &[TAINT, UNREGISTERED], Gates::open().await).await
    else {
        return;
    };
    let agent = scene.agent(&["--listen", "127.0.0.1:0"]);
    agent
        .wait_for_message("holding: Karpenter has not registered the node yet")
        .await
        .unwrap();
    scene.gates.health.wait_for_requests(3).await.unwrap();
    assert_eq!(scene.taints().await, [TAINT, UNREGISTERED]);
    assert_eq!(
        agent.status().await.unwrap()["rules"][0]["decision"],
        "held"
    );

    // As Karpenter does, one patch removes the taint and adds the label.
    let taints = json!([{"key": "example.com/not-ready", "effect": "NoExecute"}]);
    let registration = json!({"metadata": {"labels": {"karpenter.sh/registered": "true"}}, "spec": {"taints": taints}});
    scene
        .cluster
        .patch_node(scene.name, &registration)
        .await
        .unwrap();
    scene.wait_for_taints(&[]).await;

    // Karpenter's second call failed, and its next reconciliation restores the start-up taint again.
    scene.set_taints(&[TAINT]).await;
    scene.wait_for_taints(&[]).await;
}

#[tokio::test]
async fn a_node_that_karpenter_does_not_sync_taints_to_is_not_held() {
    let Some(scene) = OnCluster::with("no-sync", &[], Gates::open().await).await else {
        return;
    };
    let labels = json!({"metadata": {"labels": {"karpenter.sh/do-not-sync-taints": "true"}}});
    scene.cluster.patch_node(scene.name, &labels).await.unwrap();
    scene.set_taints(&[TAINT, UNREGISTERED]).await;
    let _agent = scene.agent(&[]);
    scene.wait_for_taints(&[UNREGISTERED]).await;
}

#[tokio::test]
async fn run_once_is_not_done_before_karpenter_has_registered_the_node() {
    let Some(scene) = OnCluster::with("once-registers", &[], Gates::open().await).await else {
        return;
    };
    let label = |name: &str, value: &str| json!({"metadata": {"labels": {name: value}}});
    scene
        .cluster
        .patch_node(scene.name, &label("karpenter.sh/nodepool", "default"))
        .await
        .unwrap();
    let mut agent = scene.agent(&["--once", "--settle", "0s"]);
    agent
        .wait_for_log(|line| line["decision"] == "absent")
        .await
        .unwrap();
    assert!(!agent.has_ended().unwrap());
    scene
        .cluster
        .patch_node(scene.name, &label("karpenter.sh/registered", "true"))
        .await
        .unwrap();
    assert_eq!(agent.exit_code().await.unwrap(), 0);
}

/// autoscaler#7268: the autoscaler assumes that pods cannot run on nodes with another taint, and adds more nodes.
#[tokio::test]
async fn a_taint_under_the_prefix_that_the_cluster_autoscaler_knows_is_removed() {
    let key = "startup-taint.cluster-autoscaler.kubernetes.io/network-not-ready";
    let gates = Gates::open().await;
    gates.configure(&gates.rule("").replace("example.com/not-ready", key));
    let taint = format!("{key}:NoSchedule");
    let Some(scene) = OnCluster::with("autoscaled", &[&taint], gates).await else {
        return;
    };
    let _agent = scene.agent(&[]);
    scene.wait_for_taints(&[]).await;
}
