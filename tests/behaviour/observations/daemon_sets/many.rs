//! What many pods cost.

use futures_util::future::join_all;
use http::{Method, Request, header};
use kube::Client;
use serde_json::{Value, json};
use testkit::kubeconfig::point_at;
use testkit::proxy::FaultProxy;

use super::super::{gates, open_last, requests, said};
use super::{Pods, pod, ready};
use crate::scene::{OnCluster, TAINT};

async fn send(client: &Client, method: Method, uri: String, body: &Value) {
    let content_type = match method {
        Method::PATCH => "application/merge-patch+json",
        _ => "application/json",
    };
    let request = Request::builder()
        .method(method)
        .uri(uri)
        .header(header::CONTENT_TYPE, content_type)
        .body(body.to_string().into_bytes());
    client.request::<Value>(request.unwrap()).await.unwrap();
}

/// Each agent costs the cluster what its own node changes. The DaemonSets themselves change with each pod of the cluster.
#[tokio::test]
async fn of_a_thousand_changes_of_other_nodes_pods_none_reaches_an_agent_with_200_pods() {
    const NAMESPACE: &str = "many";
    const UPDATES: usize = 1000;
    const PODS: usize = 200;
    /// Pods of other nodes.
    const OTHERS: usize = 20;
    let every = "{name: every, pods: {namespace: many, every: true}}";
    let Some(scene) = OnCluster::with("many", &[TAINT], gates(&[every]).await).await else {
        return;
    };
    let cluster = scene.cluster;
    Pods::new(&scene, NAMESPACE).await.permit().await;
    let client = cluster.client().await.unwrap();
    let pods = format!("/api/v1/namespaces/{NAMESPACE}/pods");
    let create = async |name: String, node: &str| {
        let object = pod(NAMESPACE, &name, &name, node);
        send(&client, Method::POST, pods.clone(), &object).await;
        let status = json!({"status": ready("True")});
        let uri = format!("{pods}/{name}/status");
        send(&client, Method::PATCH, uri, &status).await;
    };
    for some in (0..PODS).collect::<Vec<_>>().chunks(20) {
        join_all(some.iter().map(|n| create(format!("own-{n}"), scene.name))).await;
    }
    join_all((0..OTHERS).map(|n| create(format!("other-{n}"), "other"))).await;

    let proxy = FaultProxy::start(cluster.address()).await.unwrap();
    point_at(&scene.kubeconfig, proxy.address()).unwrap();
    let agent = scene.agent(&[]);
    said(
        &agent,
        "every",
        "open",
        "200 of 200 DaemonSets in many are ready",
    )
    .await;
    let before = proxy.bytes_to_clients();
    // Any pod of this size costs more.
    assert!(before > PODS * 500, "{before} bytes");
    let set_ready = async |name: String, status: &str| {
        let status = json!({"status": ready(status)});
        let uri = format!("{pods}/{name}/status");
        send(&client, Method::PATCH, uri, &status).await;
    };
    for round in 0..UPDATES / OTHERS {
        let status = if round % 2 == 0 { "False" } else { "True" };
        join_all((0..OTHERS).map(|n| set_ready(format!("other-{n}"), status))).await;
    }
    // The server sends changes in their order, so nothing else is under way then.
    set_ready("own-7".into(), "False").await;
    let closed = "1 of 200 DaemonSets in many are not ready on this node: pod own-7 is not ready";
    said(&agent, "every", "closed", closed).await;
    let received = proxy.bytes_to_clients() - before;
    // The change of the own pod, bookmarks and PINGs.
    assert!(received < 8 * 1024, "{received} bytes");
    set_ready("own-7".into(), "True").await;
    open_last(&scene).await;
    let expected = [
        "watch /api/v1/nodes",
        "watch /api/v1/namespaces/many/pods",
        "patch /api/v1/nodes/many",
    ];
    assert_eq!(requests(&scene).await, expected);
    let all = scene.all_requests().await;
    let of_pods = all.iter().filter(|request| request.uri.contains("/pods"));
    let is_of_this_node = |uri: &str| {
        let mut parameters = uri.split(['?', '&']);
        parameters.any(|parameter| parameter == "fieldSelector=spec.nodeName%3Dmany")
    };
    assert!(
        of_pods.clone().all(|request| is_of_this_node(&request.uri)),
        "{all:#?}"
    );
}
