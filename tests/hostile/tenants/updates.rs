//! Pods that were there before.

use http::Method;
use serde_json::{Value, json};
use testkit::cluster::feature_gate;

use super::scene::{AGENT, Caller, LABEL, SHOP, Scene, pod, refusing, tolerating};
use crate::request::{Answer, Request};

/// Makes this pod in a Namespace of its own, while that is exempt; the tenant of [`SHOP`] may change it.
async fn pod_from_before(scene: &Scene, namespace: &str, mut pod: Value) -> String {
    pod["metadata"] = json!({"name": "before"});
    let labels = json!({LABEL: "true"});
    let object = json!({"metadata": {"name": namespace, "labels": labels}});
    let namespaces = "/api/v1/namespaces";
    scene
        .post(Caller::Admin, namespaces, &object)
        .await
        .assert_accepted();
    let uri = format!("{namespaces}/{namespace}");
    let pods = format!("{uri}/pods");
    scene
        .wait_for(async || scene.post(Caller::Admin, &pods, &pod).await.code == 201)
        .await;
    let label = json!({"metadata": {"labels": {LABEL: null}}});
    scene
        .patch(Caller::Admin, &uri, &label)
        .await
        .assert_accepted();
    let bind = [
        "create",
        "rolebinding",
        "tenant",
        "-n",
        namespace,
        "--clusterrole=system:aggregate-to-edit",
        "--serviceaccount=shop:tenant",
    ];
    scene.cluster.kubectl(&bind).await.unwrap();
    let everything = tolerating(&json!({"operator": "Exists"}));
    scene
        .wait_for(async || {
            let answer = scene.try_pod(Caller::Tenant, namespace, &everything).await;
            answer.message().contains("may not tolerate")
        })
        .await;
    format!("{pods}/before")
}

async fn tolerate(scene: &Scene, pod: &str, tolerations: &Value) -> Answer {
    let patch = json!({"spec": {"tolerations": tolerations}});
    scene.patch(Caller::Tenant, pod, &patch).await
}

#[tokio::test]
async fn a_pod_that_slipped_past_before_can_change_but_not_so_that_it_slips_past_more() {
    let Some(scene) = refusing().await else {
        return;
    };
    let mut everything =
        json!({"operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 60});
    let network = json!({"key": "example.com/network", "value": "a"});
    let spec = json!({"tolerations": [everything, network], "nodeName": "node"});
    let uri = pod_from_before(scene, "slipped", pod(&spec)).await;
    for patch in [
        json!({"metadata": {"labels": {"a": "b"}, "finalizers": ["example.com/a"]}}),
        json!({"metadata": {"finalizers": null}}),
        json!({"spec": {"containers": [{"name": "main", "image": "newer"}]}}),
    ] {
        scene
            .patch(Caller::Tenant, &uri, &patch)
            .await
            .assert_accepted();
    }
    let mut changes = vec![(
        "ephemeralcontainers",
        json!({"spec": {"ephemeralContainers": [{"name": "debug", "image": "debug"}]}}),
    )];
    // A version in which the gate is off does not have the subresource.
    if feature_gate("InPlacePodVerticalScaling").await != Some(false) {
        let resized = json!([{"name": "main", "resizePolicy": []}]);
        changes.push(("resize", json!({"spec": {"containers": resized}})));
    }
    for (subresource, patch) in changes {
        let uri = format!("{uri}/{subresource}");
        scene
            .patch(Caller::Admin, &uri, &patch)
            .await
            .assert_accepted();
    }

    everything["tolerationSeconds"] = json!(3600);
    let harmless = json!({"key": "example.com/other", "operator": "Exists"});
    let kept = json!([everything, network, harmless]);
    tolerate(scene, &uri, &kept).await.assert_accepted();
    // Each like one that is there but for one field.
    for (more, words) in [
        (
            json!({"key": "example.com/network", "operator": "Exists", "effect": "NoExecute"}),
            "{key: example.com/network, operator: Exists, effect: NoExecute}",
        ),
        (
            json!({"key": "example.com/network", "operator": "Equal", "value": "a"}),
            "{key: example.com/network, operator: Equal, value: a}",
        ),
        (
            json!({"key": "example.com/network", "value": "b"}),
            "{key: example.com/network, value: b}",
        ),
        (
            json!({"operator": "Exists", "effect": "NoSchedule"}),
            "{operator: Exists, effect: NoSchedule}",
        ),
    ] {
        let all = json!([everything, network, harmless, more]);
        let answer = tolerate(scene, &uri, &all).await;
        answer.assert_refused(&format!(
            "start-up taints: {words} tolerates example.com/network; a"
        ));
    }
}

/// The server gives an expression only so much work, and a pod whose finalizers cannot go would be there forever.
#[tokio::test]
async fn however_many_tolerations_a_pod_has_its_finalizers_can_go() {
    let Some(scene) = refusing().await else {
        return;
    };
    let many =
        (0..1000).map(|index| json!({"key": format!("example.com/{index}"), "operator": "Exists"}));
    let spec = json!({"tolerations": many.collect::<Vec<_>>()});
    let uri = pod_from_before(scene, "many", pod(&spec)).await;
    for finalizers in [json!(["example.com/a"]), json!(null)] {
        let patch = json!({"metadata": {"finalizers": finalizers}});
        scene
            .patch(Caller::Tenant, &uri, &patch)
            .await
            .assert_accepted();
    }
}

#[tokio::test]
async fn a_pod_cannot_learn_to_tolerate_a_start_up_taint_nor_get_an_exempt_account() {
    let Some(scene) = refusing().await else {
        return;
    };
    let uri = pod_from_before(scene, "learning", pod(&json!({}))).await;
    let get = Request::new("", Method::GET, &uri, Value::Null);
    let mut whole = scene.ask(Caller::Admin, get).await.body;
    // Those that every pod is given.
    let tolerations = whole["spec"]["tolerations"].as_array_mut().unwrap();
    tolerations.push(json!({"operator": "Exists"}));
    let answer = tolerate(scene, &uri, &json!(tolerations)).await;
    answer.assert_refused("start-up taints: {operator: Exists} tolerates example.com/network");
    let put = Request::new("", Method::PUT, &uri, whole);
    let answer = scene.ask(Caller::Tenant, put).await;
    answer.assert_refused("start-up taints: {operator: Exists} tolerates example.com/network");

    // Of a pod in the namespace of the account.
    let mut own = pod(&json!({"serviceAccountName": "tenant"}));
    own["metadata"] = json!({"name": "own"});
    let pods = format!("/api/v1/namespaces/{SHOP}/pods");
    scene
        .post(Caller::Tenant, &pods, &own)
        .await
        .assert_accepted();
    let uri = format!("{pods}/own");
    for patch in [
        json!({"spec": {"serviceAccountName": AGENT}}),
        json!({"spec": {"serviceAccountName": AGENT, "tolerations": [{"operator": "Exists"}]}}),
    ] {
        let answer = scene.patch(Caller::Tenant, &uri, &patch).await;
        // By Kubernetes itself, before any policy.
        assert_eq!(answer.code, 422, "{answer:?}");
        assert!(
            answer
                .message()
                .contains("pod updates may not change fields")
        );
    }
}
