//! Tokens that say nothing of a Node, or of another one.

use http::Method;
use serde_json::json;
use testkit::cluster::Cluster;
use untaint::manifests::Account;

use crate::events::{EVENTS, event};
use crate::installation::{Installation, Options};
use crate::request::{By, JSON_PATCH, Request};

const TAINT: &str = "example.com/not-ready:NoExecute";

/// What the agent does, on a Node that has the taint as its first.
pub(crate) fn removal(node: &str) -> Request {
    let remove = json!([
        {"op": "test", "path": "/spec/taints/0/key", "value": "example.com/not-ready"},
        {"op": "remove", "path": "/spec/taints/0"},
    ]);
    let uri = format!("/api/v1/nodes/{node}");
    Request::patch(format!("{node}: removal"), uri, JSON_PATCH, remove)
}

/// A token for a pod on this Node, whose uid is then another one.
pub(crate) async fn stale_token(installation: &Installation, node: &str) -> String {
    let cluster: &Cluster = installation.cluster;
    cluster.create_node(node, &[TAINT]).await.unwrap();
    let Account { namespace, name } = &installation.account;
    let token = cluster.token_for_pod(namespace, name, node, node).await;
    cluster.delete_node(node).await.unwrap();
    cluster.create_node(node, &[TAINT]).await.unwrap();
    token.unwrap()
}

#[tokio::test]
pub(crate) async fn a_token_that_says_nothing_of_a_node_is_refused_with_the_reason_whatever_kind_it_is()
 {
    let Some(shipped) = Installation::new("claimless", Options::default()).await else {
        return;
    };
    let cluster = shipped.cluster;
    cluster.create_node("claimless", &[TAINT]).await.unwrap();
    let tokens = [
        cluster
            .token("claimless", &shipped.account.name)
            .await
            .unwrap(),
        cluster
            .token_in_secret("claimless", &shipped.account.name)
            .await
            .unwrap(),
    ];
    for token in tokens {
        let client = shipped.client(&token).await;
        let get = Request::new("", Method::GET, "/api/v1/nodes/claimless", json!(null));
        assert_eq!(get.send(&client).await.code, 200);
        for request in [
            removal("claimless"),
            Request::new("", Method::POST, EVENTS, event("claimless", "claimless")),
        ] {
            let answer = request.send(&client).await;
            assert_eq!(
                (answer.code, answer.refused_by()),
                (403, By::Policy),
                "{answer:?}"
            );
            assert!(answer.says("it has no claim authentication.kubernetes.io/node-name; tokens of pods have it from Kubernetes 1.30 on"), "{answer:?}");
        }
    }
    let allowed = removal("claimless")
        .send(&shipped.client_for("claimless").await)
        .await;
    assert_eq!(allowed.code, 200, "{allowed:?}");
}

#[tokio::test]
pub(crate) async fn a_token_for_another_node_or_of_another_account_is_refused() {
    let Some(shipped) = Installation::new("strangers", Options::default()).await else {
        return;
    };
    let cluster = shipped.cluster;
    for name in ["stranger-a", "stranger-b"] {
        cluster.create_node(name, &[TAINT]).await.unwrap();
    }
    let answer = removal("stranger-a")
        .send(&shipped.client_for("stranger-b").await)
        .await;
    assert_eq!(
        (answer.code, answer.refused_by()),
        (403, By::Policy),
        "{answer:?}"
    );
    let refusal =
        "the token is for the Node stranger-b: this account may not change the Node stranger-a";
    assert!(answer.says(refusal), "{answer:?}");
    let account = [
        "create",
        "serviceaccount",
        "other",
        "--namespace",
        "strangers",
    ];
    cluster.kubectl(&account).await.unwrap();
    let token = cluster
        .token_for_node("strangers", "other", "stranger-a")
        .await;
    let client = shipped.client(&token.unwrap()).await;
    let answer = removal("stranger-a").send(&client).await;
    assert_eq!(
        (answer.code, answer.refused_by()),
        (403, By::Rbac),
        "{answer:?}"
    );
}

/// The token's name of the Node is right, its uid is that of the Node before.
#[tokio::test]
pub(crate) async fn a_token_of_a_node_that_was_made_anew_is_good_unless_the_uid_is_asked_for() {
    let Some(by_name) = Installation::new("by-name", Options::default()).await else {
        return;
    };
    let options = Options {
        check_node_uid: true,
        ..Options::default()
    };
    let by_uid = Installation::new("by-uid", options).await.unwrap();

    let client = by_name
        .client(&stale_token(&by_name, "by-name").await)
        .await;
    let answer = removal("by-name").send(&client).await;
    assert_eq!(answer.code, 200, "{answer:?}");

    let client = by_uid.client(&stale_token(&by_uid, "by-uid").await).await;
    let answer = removal("by-uid").send(&client).await;
    assert_eq!(
        (answer.code, answer.refused_by()),
        (403, By::Policy),
        "{answer:?}"
    );
    let refusal =
        "the claim authentication.kubernetes.io/node-uid of the token is not the uid of this Node";
    assert!(answer.says(refusal), "{answer:?}");
    let answer = removal("by-uid")
        .send(&by_uid.client_for("by-uid").await)
        .await;
    assert_eq!(answer.code, 200, "{answer:?}");
}
