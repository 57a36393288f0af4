use serde_json::json;
use tempfile::tempdir;

use super::*;
use crate::taints;

#[tokio::test]
async fn a_node_bound_token_is_seen_as_the_nodes_in_the_audit_log() {
    let Some(cluster) = shared().await else {
        return;
    };
    cluster.create_node("bound", &[]).await.unwrap();
    let account = ["create", "serviceaccount", "bound"];
    cluster.kubectl(&account).await.unwrap();
    let token = cluster.token_for_node("default", "bound", "bound").await;

    let dir = tempdir().unwrap();
    let file = cluster.kubeconfig(dir.path(), &token.unwrap()).unwrap();
    let request = Request::get("/api/v1/nodes/bound").body(Vec::new());
    let client = client(&file).await.unwrap();
    client.request_text(request.unwrap()).await.unwrap_err();

    let of_node = |entry: &AuditEntry| entry.node.as_deref() == Some("bound");
    let requests = cluster.requests(of_node).await.unwrap();
    let [request] = requests.as_slice() else {
        panic!("{requests:?}");
    };
    assert_eq!(request.verb, "get");
    assert_eq!(request.uri, "/api/v1/nodes/bound");
    assert_eq!(request.code, Some(403));
    assert_eq!(request.user, "system:serviceaccount:default:bound");
}

#[tokio::test]
async fn a_wanted_state_of_a_node_is_waited_for() {
    let Some(cluster) = shared().await else {
        return;
    };
    let node = cluster.create_node("waited", &["a:NoSchedule"]).await;
    let added = "node.kubernetes.io/not-ready:NoSchedule";
    assert_eq!(taints(&node.unwrap()), ["a:NoSchedule", added]);
    let labelled = cluster.wait_for_node("waited", |node| !node["metadata"]["labels"].is_null());
    let label = json!({"metadata": {"labels": {"x": "y"}}});
    let (waited, patched) = tokio::join!(labelled, cluster.patch_node("waited", &label));
    assert_eq!(waited.unwrap(), patched.unwrap());
    let node = cluster.set_taints("waited", &["b=x:NoExecute"]).await;
    assert_eq!(taints(&node.unwrap()), ["b=x:NoExecute"]);
    cluster.delete_node("waited").await.unwrap();
    cluster.node("waited").await.unwrap_err();
}

#[tokio::test]
async fn an_agent_has_the_rights_of_the_shipped_rbac() {
    let Some(cluster) = shared().await else {
        return;
    };
    cluster.create_node("agent", &[]).await.unwrap();
    let dir = tempdir().unwrap();
    let file = cluster.agent_kubeconfig(dir.path(), "agent").await.unwrap();
    let client = client(&file).await.unwrap();
    let get = |uri| Request::get(uri).body(Vec::new()).unwrap();
    client
        .request_text(get("/api/v1/nodes/agent"))
        .await
        .unwrap();
    let pods = client.request_text(get("/api/v1/pods")).await;
    assert!(matches!(pods.unwrap_err(), kube::Error::Api(status) if status.code == 403));
}
