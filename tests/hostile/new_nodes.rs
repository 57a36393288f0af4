//! The policy that gives new Nodes their taints, and what kubelets and others create.

mod limits;
mod others;
mod scene;

use http::Method;
use serde_json::{Value, json};
use tempfile::TempDir;
use testkit::cluster::client;
use testkit::taints;

use self::scene::{
    KARPENTER, NOT_READY, Scene, assert_taints, labelled, registration, with_policy,
};
use crate::request::{APPLY, Request};
use crate::tenants::Caller;

/// What the rules of [`with_policy`] add to a Node without special labels.
const PLAIN: [&str; 4] = [
    "example.com/empty:NoSchedule",
    "example.com/network:NoExecute",
    "example.com/network=pending:NoSchedule",
    "example.com/preferred:PreferNoSchedule",
];

#[tokio::test]
async fn a_new_node_has_the_taints_of_its_rules_in_the_answer_to_its_own_registration() {
    let Some(scene) = with_policy().await else {
        return;
    };
    for (name, labels, more) in [
        ("plain", json!({}), &[][..]),
        (
            "local",
            json!({"storage": "local"}),
            &["example.com/storage:NoExecute"],
        ),
        ("remote", json!({"storage": "remote"}), &[]),
        ("half", json!({"zone": "z"}), &[]),
        (
            "both",
            json!({"zone": "z", "disk": "d"}),
            &["example.com/both:NoSchedule"],
        ),
        (
            "pool-a",
            json!({"pool": "a"}),
            &["example.com/pool=a:NoSchedule"],
        ),
        (
            "pool-b",
            json!({"pool": "b"}),
            &["example.com/pool=b:NoSchedule"],
        ),
        // Two rules select it, and a Node can have one taint of a key and effect.
        (
            "pool-a-gpu",
            json!({"pool": "a", "gpu": "yes"}),
            &["example.com/pool=a:NoSchedule"],
        ),
        (
            "gpu",
            json!({"gpu": "yes"}),
            &["example.com/pool=gpu:NoSchedule"],
        ),
    ] {
        let answer = scene.register(name, &labelled(name, &labels)).await;
        assert_eq!(answer.code, 201, "{name}: {answer:?}");
        assert_taints(&answer.body, &PLAIN, more);
        let stored = scene.cluster.node(name).await.unwrap();
        assert_eq!(taints(&stored), taints(&answer.body), "{name}");
    }

    // With a certificate, as kubelets have one.
    let directory = TempDir::new().unwrap();
    let kubeconfig = scene
        .cluster
        .kubelet_kubeconfig(directory.path(), "certified");
    let kubelet = client(&kubeconfig.unwrap()).await.unwrap();
    let body = registration("certified");
    let request = Request::new("", Method::POST, "/api/v1/nodes", body);
    let answer = request.send(&kubelet).await;
    assert_eq!(answer.code, 201, "{answer:?}");
    assert_taints(&answer.body, &PLAIN, &[]);
}

#[tokio::test]
async fn a_taint_that_the_kubelet_brings_is_not_added_twice_and_no_other_taint_changes() {
    let Some(scene) = with_policy().await else {
        return;
    };
    let brought = |name: &str, taints: &Value| {
        let mut node = registration(name);
        node["spec"]["taints"] = taints.clone();
        node
    };
    for (name, own, added) in [
        (
            "same",
            json!([{"key": "example.com/network", "value": "pending", "effect": "NoSchedule"}]),
            vec![PLAIN[0], PLAIN[1], PLAIN[3]],
        ),
        (
            // A Node with two taints of one key and effect is invalid.
            "other-value",
            json!([{"key": "example.com/network", "value": "x", "effect": "NoSchedule"}]),
            vec![PLAIN[0], PLAIN[1], PLAIN[3]],
        ),
        (
            "foreign",
            json!([
                {"key": "foreign.example/a", "effect": "NoSchedule", "timeAdded": "2026-01-02T03:04:05Z"},
                {"key": "example.com/network", "effect": "PreferNoSchedule"},
            ]),
            PLAIN.to_vec(),
        ),
        ("none", json!([]), PLAIN.to_vec()),
        ("null", Value::Null, PLAIN.to_vec()),
    ] {
        let answer = scene.register(name, &brought(name, &own)).await;
        assert_eq!(answer.code, 201, "{name}: {answer:?}");
        let all = answer.body["spec"]["taints"].as_array().unwrap();
        let own = own.as_array().cloned().unwrap_or_default();
        assert_eq!(all[..own.len()], own, "{name}");
        let rest: Vec<_> = taints(&answer.body).split_off(own.len());
        let expected: Vec<_> = [NOT_READY].into_iter().chain(added).collect();
        assert_eq!(rest, expected, "{name}");
    }
}

#[tokio::test]
async fn a_node_that_exists_gets_no_taint_whoever_changes_it() {
    let Some(scene) = with_policy().await else {
        return;
    };
    let name = "exists";
    let created = scene.create(Caller::Admin, &registration(name)).await;
    assert_eq!(created.code, 201, "{created:?}");
    assert_eq!(taints(&created.body), [NOT_READY]);

    // As a kubelet does after its restart.
    let again = scene.register(name, &registration(name)).await;
    assert_eq!(again.code, 409, "{again:?}");
    let labels = json!({"metadata": {"labels": {"example.com/x": "y"}}});
    for caller in [Caller::Admin, Caller::Kubelet(name)] {
        for part in ["", "/status"] {
            let uri = format!("/api/v1/nodes/{name}{part}");
            let answer = scene.patch(caller, &uri, &labels).await;
            assert_eq!(answer.code, 200, "{caller:?} {part}: {answer:?}");
        }
    }
    let stored = scene.cluster.node(name).await.unwrap();
    assert_eq!(taints(&stored), [NOT_READY]);

    // A Node that is deleted and registers again is new.
    scene.cluster.delete_node(name).await.unwrap();
    let answer = scene.register(name, &registration(name)).await;
    assert_taints(&answer.body, &PLAIN, &[]);
}

/// An apply creates what does not exist.
#[tokio::test]
async fn a_node_that_an_apply_creates_gets_the_taints_and_later_applies_leave_them_alone() {
    let Some(scene) = with_policy().await else {
        return;
    };
    let name = "applied";
    let uri = format!("/api/v1/nodes/{name}?fieldManager=kubelet");
    let apply = Request::patch("", uri, APPLY, registration(name));
    let created = scene.ask(Caller::Kubelet(name), apply.clone()).await;
    assert_eq!(created.code, 201, "{created:?}");
    assert_taints(&created.body, &PLAIN, &[]);
    let again = scene.ask(Caller::Kubelet(name), apply.clone()).await;
    assert_eq!(again.code, 200, "{again:?}");
    assert_taints(&again.body, &PLAIN, &[]);
    scene.cluster.set_taints(name, &[]).await.unwrap();
    let after_removal = scene.ask(Caller::Kubelet(name), apply).await;
    assert_eq!(after_removal.code, 200, "{after_removal:?}");
    assert_eq!(taints(&after_removal.body), [""; 0]);
}

#[tokio::test]
async fn nodes_of_karpenter_get_the_taints_only_on_request() {
    let Some(scene) = with_policy().await else {
        return;
    };
    let unregistered = |name: &str| {
        let mut node = registration(name);
        node["spec"]["taints"] =
            json!([{"key": "karpenter.sh/unregistered", "effect": "NoExecute"}]);
        node
    };
    let bodies = |name: &str| {
        [
            labelled(name, &json!({KARPENTER: "default"})),
            unregistered(name),
        ]
    };
    for body in bodies("karpenter") {
        let answer = scene.try_registration("karpenter", &body).await;
        assert_eq!(answer.code, 201, "{answer:?}");
        let taints = taints(&answer.body);
        assert!(
            !taints.iter().any(|taint| taint.starts_with("example.com/")),
            "{taints:?}"
        );
    }

    let Some(all) = Scene::start(&[], scene::RULES, "--taint-new-nodes=All").await else {
        return;
    };
    for body in bodies("karpenter") {
        let answer = all.try_registration("karpenter", &body).await;
        assert_eq!(answer.code, 201, "{answer:?}");
        let taints = taints(&answer.body);
        assert!(
            PLAIN.iter().all(|taint| taints.iter().any(|t| t == taint)),
            "{taints:?}"
        );
    }
}
