//! A tenant's pods where the policies are in force.

use serde_json::{Value, json};

use super::scene::{Caller, SHOP, pod, refusing, tolerating};

const REMEDIES: &str = "; a cluster administrator can exempt the namespace, with the label \
                        untaint/may-tolerate-startup-taints=true or in the bindings of the policy \
                        untaint-tolerations, or the ServiceAccount in the policy";

#[tokio::test]
async fn a_tenants_pod_that_tolerates_a_start_up_taint_is_refused_with_the_toleration_the_taint_and_the_remedies()
 {
    let Some(scene) = refusing().await else {
        return;
    };
    for (toleration, words) in [
        (
            json!({"operator": "Exists"}),
            "{operator: Exists} tolerates example.com/network",
        ),
        (
            json!({"operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 1}),
            "{operator: Exists, effect: NoExecute} tolerates example.com/network",
        ),
        (
            json!({"key": "example.com/network", "operator": "Exists", "effect": "NoSchedule"}),
            "{key: example.com/network, operator: Exists, effect: NoSchedule} tolerates example.com/network",
        ),
        (
            json!({"key": "example.com/network", "value": "true"}),
            "{key: example.com/network, value: true} tolerates example.com/network",
        ),
        // Of a rule with dryRun.
        (
            json!({"key": "example.com/storage", "value": "pending"}),
            "{key: example.com/storage, value: pending} tolerates example.com/storage=pending:NoSchedule",
        ),
    ] {
        for caller in [Caller::Tenant, Caller::Admin] {
            let pod = tolerating(&toleration);
            let answer = scene.try_pod(caller, SHOP, &pod).await;
            answer.assert_refused(&format!(
                "pods in the namespace shop may not tolerate start-up taints: {words}{REMEDIES}"
            ));
        }
    }
}

#[tokio::test]
async fn each_toleration_that_slips_past_is_named() {
    let Some(scene) = refusing().await else {
        return;
    };
    let tolerations = json!([
        {"key": "example.com/network", "operator": "Exists"},
        {"key": "example.com/other", "operator": "Exists"},
        {"operator": "Exists", "effect": "NoSchedule"},
    ]);
    let pod = pod(&json!({"tolerations": tolerations}));
    let answer = scene.try_pod(Caller::Tenant, SHOP, &pod).await;
    answer.assert_refused(
        "taints: {key: example.com/network, operator: Exists} tolerates example.com/network; \
         {operator: Exists, effect: NoSchedule} tolerates example.com/network; a cluster",
    );
}

/// `AddOrUpdateDaemonPodTolerations` in k8s.io/kubernetes/pkg/controller/daemon/util.
#[tokio::test]
async fn what_daemon_sets_tolerate_by_themselves_and_what_is_no_start_up_taint_passes() {
    let Some(scene) = refusing().await else {
        return;
    };
    let automatic = |name: &str, effect: &str| json!({"key": format!("node.kubernetes.io/{name}"), "operator": "Exists", "effect": effect});
    let of_daemon_sets = [
        automatic("not-ready", "NoExecute"),
        automatic("unreachable", "NoExecute"),
        automatic("disk-pressure", "NoSchedule"),
        automatic("memory-pressure", "NoSchedule"),
        automatic("pid-pressure", "NoSchedule"),
        automatic("unschedulable", "NoSchedule"),
        automatic("network-unavailable", "NoSchedule"),
    ];
    let others = [
        json!({"operator": "Exists", "effect": "PreferNoSchedule"}),
        json!({"key": "example.com/storage", "value": "ready"}),
        json!({"key": "example.com/storage", "operator": "Exists", "effect": "NoExecute"}),
        json!({"key": "nvidia.com/gpu", "operator": "Exists"}),
    ];
    let tolerations: Vec<Value> = of_daemon_sets.into_iter().chain(others).collect();
    for pod in [pod(&json!({"tolerations": tolerations})), pod(&json!({}))] {
        let answer = scene.try_pod(Caller::Tenant, SHOP, &pod).await;
        answer.assert_accepted();
    }
}

/// The API server puts them into the pod before policies see it.
#[tokio::test]
async fn the_tolerations_of_a_runtime_class_count_as_the_pods_own() {
    let Some(scene) = refusing().await else {
        return;
    };
    let class = json!({
        "apiVersion": "node.k8s.io/v1",
        "kind": "RuntimeClass",
        "metadata": {"name": "sandboxed"},
        "handler": "sandboxed",
        "scheduling": {"tolerations": [{"operator": "Exists"}]},
    });
    let uri = "/apis/node.k8s.io/v1/runtimeclasses";
    scene
        .post(Caller::Admin, uri, &class)
        .await
        .assert_accepted();
    let pod = pod(&json!({"runtimeClassName": "sandboxed"}));
    // The plugin sees a new class a moment later.
    scene
        .wait_for(async || scene.try_pod(Caller::Tenant, SHOP, &pod).await.code == 403)
        .await;
    let answer = scene.try_pod(Caller::Tenant, SHOP, &pod).await;
    answer.assert_refused("{operator: Exists} tolerates example.com/network");
}
