//! The account of a CNI or a vendor: all of its rights but those to taints.

use http::Method;
use serde_json::{Value, json};
use untaint::manifests::Form;

use crate::changes;
use crate::events::{EVENTS, event};
use crate::installation::{Installation, Options, rich_node};
use crate::nodes::{own_condition, own_removal};
use crate::owners;
use crate::request::{APPLY, By, MERGE, Request};

const FORMS: [Form; 3] = [Form::Sidecar, Form::InitContainer, Form::PostStart];

#[tokio::test]
pub(crate) async fn an_account_of_others_keeps_its_rights_but_those_to_taints() {
    for form in FORMS {
        let name = format!("shared-{form:?}").to_lowercase();
        let options = Options {
            form,
            ..Options::default()
        };
        let Some(shared) = Installation::new(&name, options).await else {
            return;
        };
        shared.be_too_generous().await;
        let [own, other] = [format!("{name}-own"), format!("{name}-other")];
        let own = rich_node(shared.cluster, &own).await;
        let other = rich_node(shared.cluster, &other).await;
        let client = shared
            .client_for(own["metadata"]["name"].as_str().unwrap())
            .await;
        let claimless = shared
            .cluster
            .token(&name, &shared.account.name)
            .await
            .unwrap();
        let claimless = shared.client(&claimless).await;

        let not_other = "the token is for the Node ";
        let mut refused: Vec<(Request, &str)> = Vec::new();
        for change in changes::of_taints(&own) {
            let message = change.message;
            refused.extend(
                change
                    .requests(&own, "")
                    .into_iter()
                    .map(|request| (request, message)),
            );
        }
        let on_other = own_removal(&other).requests(&other, "");
        refused.extend(on_other.into_iter().map(|request| (request, not_other)));
        for (node, message) in [(&own, "their owner in managedFields"), (&other, not_other)] {
            let [taints, _] = <[_; 2]>::try_from(owners::rows(node)).ok().unwrap();
            refused.push((taints.request.dry(), message));
        }
        for (request, message) in refused {
            let answer = request.send(&client).await;
            let is_right = answer.refused_by() == By::Policy && answer.says(message);
            assert!(
                is_right || answer.is_conflict_of(&request),
                "{}: {answer:?}",
                request.name
            );
        }
        for request in own_removal(&own).requests(&own, "") {
            let answer = request.send(&claimless).await;
            let is_right = answer.says("the token is for no Node");
            assert!(
                is_right || answer.is_conflict_of(&request),
                "{}: {answer:?}",
                request.name
            );
        }

        // With whatever token, and on every Node.
        for (client, node) in [(&client, &other), (&claimless, &own)] {
            for request in others(node) {
                let answer = request.dry().send(client).await;
                assert!(matches!(answer.code, 200 | 201), "{answer:?}");
            }
        }
        let uri = format!(
            "/api/v1/nodes/{}",
            own["metadata"]["name"].as_str().unwrap()
        );
        let both = json!({
            "metadata": {"labels": {"x": "y"}},
            "spec": {"taints": own_removal(&own).fields[0].2},
        });
        let answer = Request::patch("", uri, MERGE, both).send(&client).await;
        assert_eq!(answer.code, 200, "{answer:?}");
    }
}

/// What the roles of untaint would let it do to every Node otherwise.
#[tokio::test]
pub(crate) async fn an_account_of_others_without_work_of_its_own_can_be_held_to_that_of_untaint() {
    let options = Options {
        form: Form::PostStart,
        strict_policy: true,
        ..Options::default()
    };
    let Some(strict) = Installation::new("strict", options).await else {
        return;
    };
    strict.be_too_generous().await;
    let own = rich_node(strict.cluster, "strict-own").await;
    let other = rich_node(strict.cluster, "strict-other").await;
    let client = strict.client_for("strict-own").await;
    for node in [&own, &other] {
        for request in others(node) {
            // The one condition that a rule publishes.
            if node == &own && request.uri.ends_with("/status") {
                continue;
            }
            let answer = request.dry().send(&client).await;
            assert_eq!(answer.refused_by(), By::Policy, "{answer:?}");
        }
    }
    let mut work = own_removal(&own).requests(&own, "");
    // Whoever applies something owns it then: see `owners`.
    work.retain(|request| request.content_type != APPLY);
    for request in work {
        let answer = request.dry().send(&client).await;
        assert_eq!(answer.code, 200, "{answer:?}");
    }
}

/// What an account may have other reasons for.
fn others(node: &Value) -> Vec<Request> {
    let name = node["metadata"]["name"].as_str().unwrap();
    let uri = format!("/api/v1/nodes/{name}");
    let mut requests = own_condition(node).requests(node, "/status");
    // Not as another field manager, who would be in the way of the owners.
    requests.retain(|request| !request.uri.contains("fieldManager"));
    for patch in [
        json!({"metadata": {"labels": {"x": "y"}, "annotations": {"x": "y"}}}),
        json!({"spec": {"unschedulable": true}}),
        json!({"spec": {"podCIDR": "10.1.0.0/24", "podCIDRs": ["10.1.0.0/24"]}}),
    ] {
        requests.push(Request::patch("", &uri, MERGE, patch));
    }
    requests.push(Request::new("", Method::DELETE, uri, Value::Null));
    let new = json!({"metadata": {"name": "new"}, "spec": {"taints": [{"key": "x", "effect": "NoSchedule"}]}});
    requests.push(Request::new("", Method::POST, "/api/v1/nodes", new));
    let mut event = event("vendors", "another");
    event["reportingController"] = json!("vendor.example/agent");
    requests.push(Request::new("", Method::POST, EVENTS, event));
    requests
}
