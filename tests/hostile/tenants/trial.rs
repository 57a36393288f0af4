//! The policies tried out: nothing is refused.

use serde_json::json;

use super::scene::{Caller, SHOP, Scene, pod};

const RULES: &str = "- {name: network, taint: {key: example.com/network}, gates: []}\n";

#[tokio::test]
async fn a_policy_that_is_tried_out_warns_and_leaves_its_words_in_the_audit_log() {
    let Some(scene) = Scene::start(&[]).await else {
        return;
    };
    let flags = ["--toleration-policy=Warn", "--node-name-policy=Warn"];
    scene.apply_policies(RULES, &flags).await;
    let both = pod(&json!({"tolerations": [{"operator": "Exists"}], "nodeName": "node"}));
    scene
        .wait_for(async || {
            let answer = scene.try_pod(Caller::Tenant, SHOP, &both).await;
            answer.warnings.len() == 2
        })
        .await;

    let mut tolerating = both.clone();
    tolerating["spec"]["nodeName"] = json!(null);
    let mut named = both;
    named["spec"]["tolerations"] = json!(null);
    for (pod, policy, words) in [
        (
            tolerating,
            "untaint-tolerations",
            "pods in the namespace shop may not tolerate start-up taints: {operator: Exists} tolerates example.com/network;",
        ),
        (
            named,
            "untaint-node-names",
            "pods in the namespace shop may not choose their Node by spec.nodeName (node),",
        ),
    ] {
        let uri = format!("/api/v1/namespaces/{SHOP}/pods");
        let answer = scene.post(Caller::Tenant, &uri, &pod).await;
        answer.assert_accepted_with_warning(policy);
        assert!(answer.warnings[0].contains(words), "{answer:?}");
        let audited = scene
            .cluster
            .requests(|entry| entry.verb == "create" && entry.uri == uri)
            .await
            .unwrap();
        let failure = "validation.policy.admission.k8s.io/validation_failure";
        let failure = &audited.last().unwrap().annotations[failure];
        let failure: serde_json::Value = serde_json::from_str(failure).unwrap();
        assert_eq!(failure[0]["policy"], policy);
        assert_eq!(failure[0]["binding"], policy);
        assert_eq!(failure[0]["validationActions"], json!(["Warn", "Audit"]));
        let message = failure[0]["message"].as_str().unwrap();
        assert!(message.contains(words), "{message}");
    }
}
