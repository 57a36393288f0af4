//! The pod in which untaint runs.

use serde_json::{Value, json};

use super::super::{gates, kubectl, open_last, said};
use super::{Pods, ready};
use crate::scene::{OnCluster, TAINT};

/// As an init container, `run --once` keeps its own pod from being ready.
#[tokio::test]
async fn a_program_that_ends_does_not_wait_for_its_own_pod_and_another_does() {
    let every = "{name: every, pods: {namespace: untaint, every: true}}";
    let Some(scene) = OnCluster::with("own-pod", &[TAINT], gates(&[every]).await).await else {
        return;
    };
    let cluster = scene.cluster;
    let pods = Pods {
        scene: &scene,
        namespace: "untaint",
    };
    pods.permit().await;
    let is_warning = |line: &Value| {
        let message = line["message"].as_str().unwrap_or_default();
        line["gate"] == "every" && message.starts_with("cannot tell which pod is untaint's own")
    };
    let without_pod = scene.agent(&["--once"]);
    without_pod.wait_for_log(is_warning).await.unwrap();
    drop(without_pod);
    let token = cluster.token_for_pod("untaint", "untaint", scene.name, scene.name);
    let token = token.await.unwrap();
    cluster.kubeconfig(scene.gates.dir.path(), &token).unwrap();
    let changes = json!([
        {"op": "add", "path": "/spec/tolerations/-", "value": {"operator": "Exists"}},
        {
            "op": "add",
            "path": "/metadata/ownerReferences",
            "value": pods.of("own", scene.name)["metadata"]["ownerReferences"],
        },
    ]);
    let changes = changes.to_string();
    let pod = ["patch", "--namespace", "untaint", "pod", scene.name];
    let patch = ["--type=json", "--patch", &changes];
    kubectl(cluster, &[&pod[..], &patch].concat()).await;
    pods.add("a", "own-pod-a", &ready("True")).await;

    let stays = scene.agent(&[]);
    let own = "1 of 2 DaemonSets in untaint are not ready on this node: pod own-pod is not ready";
    said(&stays, "every", "closed", own).await;
    drop(stays);
    let mut ends = scene.agent(&["--once", "--settle", "100ms"]);
    let own = "1 of 1 DaemonSets in untaint are ready on this node; not waited for: pod own-pod waits until this untaint ends";
    said(&ends, "every", "open", own).await;
    open_last(&scene).await;
    assert_eq!(ends.exit_code().await.unwrap(), 0);
    assert!(!ends.logs().iter().any(is_warning));
}
