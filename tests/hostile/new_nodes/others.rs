//! Nodes that nobody would untaint, or that others create.

use http::Method;
use serde_json::json;
use testkit::taints;

use super::scene::{NOT_READY, labelled, registration, with_policy};
use crate::request::Request;
use crate::tenants::Caller;

#[tokio::test]
async fn a_node_on_which_untaint_does_not_run_gets_no_taint() {
    let Some(scene) = with_policy().await else {
        return;
    };
    for labels in [
        json!({"kubernetes.io/os": "windows"}),
        json!({"eks.amazonaws.com/compute-type": "fargate"}),
        json!({"type": "virtual-kubelet"}),
    ] {
        let node = labelled("elsewhere", &labels);
        let answer = scene.try_registration("elsewhere", &node).await;
        assert_eq!(answer.code, 201, "{labels}: {answer:?}");
        assert_eq!(taints(&answer.body), [NOT_READY], "{labels}");
    }
    for labels in [
        json!({"eks.amazonaws.com/compute-type": "auto"}),
        json!({"type": "worker"}),
    ] {
        let node = labelled("here", &labels);
        let answer = scene.try_registration("here", &node).await;
        assert_eq!(taints(&answer.body).len(), 5, "{labels}: {answer:?}");
    }
    let mut node = registration("unlabelled");
    node["metadata"]["labels"] = json!(null);
    let answer = scene.try_registration("unlabelled", &node).await;
    assert_eq!(taints(&answer.body), [NOT_READY], "{answer:?}");
}

#[tokio::test]
async fn nodes_that_others_create_get_no_taint_and_no_node_registers_another() {
    let Some(scene) = with_policy().await else {
        return;
    };
    for (user, group) in [
        ("admin", "system:masters"),
        (
            "system:serviceaccount:kube-system:cloud-node-manager",
            "system:masters",
        ),
        // Neither a name nor a group alone is that of a kubelet.
        ("system:node:made", "system:masters"),
        ("system:node:", "system:masters"),
        ("made", "system:masters"),
    ] {
        let mut request =
            Request::new("", Method::POST, "/api/v1/nodes", registration("made")).dry();
        request.headers = vec![
            ("impersonate-user", user.to_owned()),
            ("impersonate-group", group.to_owned()),
        ];
        let answer = scene.ask(Caller::Admin, request).await;
        assert_eq!(answer.code, 201, "{user}: {answer:?}");
        assert_eq!(taints(&answer.body), [NOT_READY], "{user}");
    }
    // The server has not given it a name yet when the policy looks at it.
    let mut nameless = registration("made");
    nameless["metadata"]["name"] = json!(null);
    nameless["metadata"]["generateName"] = json!("made-");
    for groups in [&["system:masters"][..], &["system:masters", "system:nodes"]] {
        let mut request = Request::new("", Method::POST, "/api/v1/nodes", nameless.clone()).dry();
        request.headers = vec![("impersonate-user", "made".to_owned())];
        let groups = groups.iter();
        let groups = groups.map(|group| ("impersonate-group", (*group).to_owned()));
        request.headers.extend(groups);
        let answer = scene.ask(Caller::Admin, request).await;
        assert_eq!(answer.code, 201, "{answer:?}");
        assert_eq!(taints(&answer.body), [NOT_READY]);
    }
    let answer = scene.try_registration("one", &registration("other")).await;
    assert_eq!(answer.code, 403, "{answer:?}");
    assert!(
        answer
            .message()
            .contains("node \"one\" is not allowed to modify node \"other\""),
        "{answer:?}"
    );
}

/// Before the server validates the labels, the policy sees them.
#[tokio::test]
async fn labels_and_taints_that_the_server_refuses_are_refused_by_the_server_and_not_by_the_policy()
{
    let Some(scene) = with_policy().await else {
        return;
    };
    for labels in [
        json!({"storage=local": ""}),
        json!({"": "storage=local"}),
        json!({"storage": "local'"}),
        json!({"storage": "\"]\n\\"}),
        json!({"storage": "ö".repeat(10_000)}),
        json!({"a'b": "{{rules}}"}),
    ] {
        let answer = scene
            .try_registration("odd", &labelled("odd", &labels))
            .await;
        assert_eq!(answer.code, 422, "{labels}: {answer:?}");
        let message = answer.message();
        assert!(
            message.contains("metadata.labels: Invalid value"),
            "{message}"
        );
        assert!(!message.contains("policy"), "{message}");
    }
    for taint in [
        json!({}),
        json!({"key": "example.com/network"}),
        json!({"key": "a b", "effect": "NoSchedule"}),
        json!({"key": "a", "effect": "Never"}),
    ] {
        let mut node = registration("odd");
        node["spec"]["taints"] = json!([taint]);
        let answer = scene.try_registration("odd", &node).await;
        assert_eq!(answer.code, 422, "{taint}: {answer:?}");
        let message = answer.message();
        assert!(
            message.contains("taints[0]") && !message.contains("policy"),
            "{message}"
        );
    }
}

/// As a mutating webhook can do as well.
#[tokio::test]
async fn another_policy_that_replaces_the_taints_afterwards_does_not_take_them_away() {
    const ANOTHER: &str = r#"
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicy
metadata: {name: zzz-another}
spec:
  failurePolicy: Fail
  reinvocationPolicy: Never
  matchConstraints:
    resourceRules:
    - {apiGroups: [""], apiVersions: ["*"], resources: [nodes], operations: [CREATE]}
  matchConditions:
  - {name: its-node, expression: "object.metadata.?name.orValue('') == 'replaced'"}
  mutations:
  - patchType: JSONPatch
    jsonPatch:
      expression: >-
        [JSONPatch{op: 'add', path: '/spec/taints', value: [{'key': 'foreign.example/a', 'effect': 'NoSchedule'}]}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicyBinding
metadata: {name: zzz-another}
spec: {policyName: zzz-another}
"#;
    let Some(scene) = with_policy().await else {
        return;
    };
    scene.cluster.apply(ANOTHER).await.unwrap();
    let node = registration("replaced");
    let foreign = "foreign.example/a:NoSchedule";
    scene
        .wait_for(async || {
            let answer = scene.try_registration("replaced", &node).await;
            taints(&answer.body).iter().any(|taint| taint == foreign)
        })
        .await;
    let answer = scene.register("replaced", &node).await;
    assert_eq!(answer.code, 201, "{answer:?}");
    let mut taints = taints(&answer.body);
    taints.retain(|taint| taint != foreign && taint != NOT_READY);
    assert_eq!(taints, super::PLAIN);
}
