//! Pods that are made for a Node.

use serde_json::json;

use super::scene::{Caller, SHOP, pod, refusing};

#[tokio::test]
async fn a_tenants_pod_with_a_node_name_is_refused_with_the_remedies() {
    let Some(scene) = refusing().await else {
        return;
    };
    for caller in [Caller::Tenant, Caller::Admin] {
        let named = pod(&json!({"nodeName": "node-1"}));
        let answer = scene.try_pod(caller, SHOP, &named).await;
        answer.assert_refused(
            "pods in the namespace shop may not choose their Node by spec.nodeName (node-1), which bypasses start-up \
             taints: use nodeSelector or nodeAffinity; a cluster administrator can exempt the namespace, with the label \
             untaint/may-tolerate-startup-taints=true or in the bindings of the policy untaint-node-names, or the \
             ServiceAccount in the policy",
        );
    }
}

/// Neither policy looks at bindings: the roles of Kubernetes keep them for schedulers.
#[tokio::test]
async fn a_scheduler_may_bind_a_pod_and_a_tenant_may_not() {
    let Some(scene) = refusing().await else {
        return;
    };
    scene.cluster.create_node("bound", &[]).await.unwrap();
    let mut waiting = pod(&json!({}));
    waiting["metadata"] = json!({"name": "waiting"});
    let pods = format!("/api/v1/namespaces/{SHOP}/pods");
    let uri = format!("{pods}/waiting");
    scene
        .post(Caller::Tenant, &pods, &waiting)
        .await
        .assert_accepted();
    let binding = json!({
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": {"name": "waiting"},
        "target": {"apiVersion": "v1", "kind": "Node", "name": "bound"},
    });
    for uri in [
        format!("{uri}/binding"),
        format!("/api/v1/namespaces/{SHOP}/bindings"),
    ] {
        let answer = scene.post(Caller::Tenant, &uri, &binding).await;
        answer.assert_refused("User \"system:serviceaccount:shop:tenant\" cannot create resource");
    }
    let node = json!({"spec": {"nodeName": "bound"}});
    let answer = scene.patch(Caller::Tenant, &uri, &node).await;
    assert_eq!(answer.code, 422, "{answer:?}");

    let scheduler = Caller::Scheduler;
    let bound = scene
        .post(scheduler, &format!("{uri}/binding"), &binding)
        .await;
    bound.assert_accepted();
    let label = json!({"metadata": {"labels": {"a": "b"}}});
    let labelled = scene.patch(Caller::Tenant, &uri, &label).await;
    labelled.assert_accepted();
    assert_eq!(labelled.body["spec"]["nodeName"], "bound");
}
