//! Who is exempt, and who is not.

use serde_json::{Value, json};
use testkit::DEADLINE;
use tokio::time::timeout;

use super::scene::{AGENT, Caller, LABEL, LABELLED, LISTED, SHOP, pod, refusing};

/// A pod against which both policies are.
fn slipping(account: Option<&str>) -> Value {
    let mut pod = pod(&json!({"tolerations": [{"operator": "Exists"}], "nodeName": "node"}));
    if let Some(account) = account {
        pod["spec"]["serviceAccountName"] = json!(account);
    }
    pod
}

#[tokio::test]
async fn listed_and_labelled_namespaces_kube_system_and_the_agents_own_are_exempt() {
    let Some(scene) = refusing().await else {
        return;
    };
    for namespace in [LISTED, LABELLED, "kube-system", "untaint"] {
        let answer = scene
            .try_pod(Caller::Admin, namespace, &slipping(None))
            .await;
        answer.assert_accepted();
    }
    for namespace in [SHOP, "default", "kube-public"] {
        let answer = scene
            .try_pod(Caller::Admin, namespace, &slipping(None))
            .await;
        assert_eq!(answer.code, 403, "{namespace}");
    }
}

#[tokio::test]
async fn an_account_is_exempt_in_its_own_namespace_alone() {
    let Some(scene) = refusing().await else {
        return;
    };
    for (namespace, account, code) in [
        (SHOP, Some(AGENT), 201),
        (SHOP, Some("tenant"), 403),
        (SHOP, Some("default"), 403),
        (SHOP, None, 403),
        ("default", Some(AGENT), 403),
        ("elsewhere", Some(AGENT), 403),
        // A pod without one has this.
        ("elsewhere", Some("default"), 201),
        ("elsewhere", None, 201),
    ] {
        let pod = slipping(account);
        let answer = scene.try_pod(Caller::Admin, namespace, &pod).await;
        assert_eq!(answer.code, code, "{namespace} {account:?}: {answer:?}");
    }
    let pod = slipping(Some(AGENT));
    scene
        .try_pod(Caller::Tenant, SHOP, &pod)
        .await
        .assert_accepted();
}

/// Kustomize's `namespace` moves the pods of the agent to a namespace that the bindings of the policies do not name.
#[tokio::test]
async fn the_account_of_the_agent_is_exempt_where_it_was_renamed_and_one_that_may_do_everything_is_not()
 {
    let Some(scene) = refusing().await else {
        return;
    };
    let accounts = "
apiVersion: v1
kind: Namespace
metadata: {name: renamed}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: pre-untaint}
rules:
- {apiGroups: [untaint.dev], resources: [ownnode], resourceNames: ['untaint:untaint'], verbs: [hold]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: pre-untaint}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: pre-untaint}
subjects:
- {kind: ServiceAccount, name: pre-untaint, namespace: renamed}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: administrator}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: cluster-admin}
subjects:
- {kind: ServiceAccount, name: administrator, namespace: renamed}
";
    scene.cluster.apply(accounts).await.unwrap();
    let pod = slipping(Some("pre-untaint"));
    let exempt = async { while scene.try_pod(Caller::Admin, "renamed", &pod).await.code != 201 {} };
    timeout(DEADLINE, exempt).await.unwrap();
    for account in [Some("administrator"), Some("default"), None] {
        let answer = scene
            .try_pod(Caller::Admin, "renamed", &slipping(account))
            .await;
        assert_eq!(answer.code, 403, "{account:?}: {answer:?}");
    }
}

#[tokio::test]
async fn a_tenant_cannot_label_its_namespace_and_only_true_is_an_exemption() {
    let Some(scene) = refusing().await else {
        return;
    };
    let label = json!({"metadata": {"labels": {LABEL: "true"}}});
    let uri = format!("/api/v1/namespaces/{SHOP}");
    let answer = scene.patch(Caller::Tenant, &uri, &label).await;
    assert_eq!(answer.code, 403, "{answer:?}");

    let other = json!({"metadata": {"name": "not-exempt", "labels": {LABEL: "false"}}});
    scene
        .post(Caller::Admin, "/api/v1/namespaces", &other)
        .await
        .assert_accepted();
    let answer = scene
        .try_pod(Caller::Admin, "not-exempt", &slipping(None))
        .await;
    assert_eq!(answer.code, 403, "{answer:?}");
}

/// Of a static pod, as its kubelet shows it.
#[tokio::test]
async fn a_kubelet_may_mirror_its_static_pods_and_a_tenant_may_not_pretend_to() {
    let Some(scene) = refusing().await else {
        return;
    };
    let node = scene.cluster.create_node("mirror", &[]).await.unwrap();
    let mut mirror = slipping(None);
    mirror["metadata"] = json!({
        "name": "static-mirror",
        "annotations": {"kubernetes.io/config.mirror": "1"},
        "ownerReferences": [{
            "apiVersion": "v1",
            "kind": "Node",
            "name": "mirror",
            "uid": node["metadata"]["uid"],
            "controller": true,
        }],
    });
    mirror["spec"]["nodeName"] = json!("mirror");
    // The plugin NodeRestriction sees a new Node a moment later.
    let kubelet = Caller::Kubelet("mirror");
    scene
        .wait_for(async || scene.try_pod(kubelet, SHOP, &mirror).await.code != 404)
        .await;
    scene
        .try_pod(kubelet, SHOP, &mirror)
        .await
        .assert_accepted();
    let answer = scene.try_pod(Caller::Tenant, SHOP, &mirror).await;
    answer.assert_refused("pods in the namespace shop may not");

    // What a kubelet's credentials are good for besides.
    mirror["metadata"]["annotations"] = json!({});
    let answer = scene.try_pod(kubelet, SHOP, &mirror).await;
    answer.assert_refused("node \"mirror\" can only create mirror pods");
}
