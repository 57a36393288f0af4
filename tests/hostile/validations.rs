//! Every validation of the policies is needed: without it, what it is there to refuse is refused no longer, or for
//! another reason.

use http::Method;
use kube::Client;
use serde_json::{Value, json};
use untaint::manifests::Part;

use crate::events::{EVENTS, event};
use crate::installation::{Installation, Options, rich_node};
use crate::request::{By, MERGE, Request};
use crate::tokens::{removal, stale_token};

/// One of the policies, and what its validations are there to refuse, one by one.
struct Policy {
    name: &'static str,
    refused: Vec<Refused>,
}

/// With a client of [`Clients`], a request and a part of the message.
type Refused = (fn(&Clients) -> &Client, Request, &'static str);

struct Clients {
    own: Client,
    claimless: Client,
    stale: Client,
}

fn nodes(prefix: &str) -> Policy {
    let own = format!("/api/v1/nodes/{prefix}-own");
    let change = |patch: Value| Request::patch("", &own, MERGE, patch);
    let not_ready = json!({"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"});
    let status = json!({"status": {"capacity": {"cpu": "64"}}});
    let status = Request::patch("", format!("{own}/status"), MERGE, status);
    let applied = json!({
        "manager": "x", "operation": "Apply", "apiVersion": "v1", "time": "2026-01-01T00:00:00Z",
        "fieldsType": "FieldsV1", "fieldsV1": {"f:spec": {"f:taints": {}}},
    });
    let delete = Request::new("", Method::DELETE, &own, Value::Null);
    let stale = removal(&format!("{prefix}-stale"));
    Policy {
        name: "",
        refused: vec![
            (|all| &all.own, delete, "refused: DELETE"),
            (
                |all| &all.claimless,
                removal(&format!("{prefix}-own")),
                "no claim",
            ),
            (
                |all| &all.own,
                removal(&format!("{prefix}-other")),
                "may not change the Node",
            ),
            (|all| &all.stale, stale, "is not the uid"),
            (
                |all| &all.own,
                change(json!({"metadata": {"labels": {"x": "y"}}})),
                "in its metadata",
            ),
            (
                |all| &all.own,
                change(json!({"spec": {"unschedulable": true}})),
                "spec except taints",
            ),
            (
                |all| &all.own,
                change(json!({"spec": {"taints": [not_ready]}})),
                "all other taints must stay",
            ),
            (|all| &all.own, status, "status except the conditions"),
            (
                |all| &all.own,
                change(json!({"metadata": {"managedFields": [applied]}})),
                "in managedFields",
            ),
        ],
    }
}

fn events(prefix: &str) -> Policy {
    let own = format!("{prefix}-own");
    let create = |node: &str| Request::new("", Method::POST, EVENTS, event("new", node));
    let mut elsewhere = event("new", &own);
    elsewhere["metadata"]["namespace"] = json!("kube-system");
    let uri = EVENTS.replace("default", "kube-system");
    let elsewhere = Request::new("", Method::POST, uri, elsewhere);
    Policy {
        name: "events",
        refused: vec![
            (|all| &all.own, elsewhere, "refused: CREATE in kube-system"),
            (|all| &all.claimless, create(&own), "no claim"),
            (
                |all| &all.own,
                create("another"),
                "may only write Events about the Node",
            ),
        ],
    }
}

fn name(installation: &Installation, policy: &str) -> String {
    let account = &installation.manifests.account;
    match policy {
        "" => account.objects(),
        purpose => account.objects_for(purpose),
    }
}

/// With this validation of this policy taken out, if any.
async fn install(namespace: &str, without: Option<(&str, usize)>) -> Option<Installation> {
    let options = Options {
        check_node_uid: true,
        ..Options::default()
    };
    let installation = Installation::account(namespace, options).await?;
    let yaml = installation.manifests.render(&[Part::Policy]).unwrap();
    let mut objects: Vec<Value> = serde_yaml::from_multiple(&yaml).unwrap();
    if let Some((policy, index)) = without {
        let name = name(&installation, policy);
        let is_it = |object: &&mut Value| object["metadata"]["name"] == json!(name);
        let policy = objects.iter_mut().find(is_it).unwrap();
        policy["spec"]["validations"]
            .as_array_mut()
            .unwrap()
            .remove(index);
    }
    let list = json!({"apiVersion": "v1", "kind": "List", "items": objects});
    installation.cluster.apply(&list.to_string()).await.unwrap();
    installation.be_too_generous().await;
    installation.in_force().await;
    Some(installation)
}

/// Which of all that is to be refused is not, or for another reason.
async fn missed(installation: &Installation) -> Vec<(&'static str, usize)> {
    let cluster = installation.cluster;
    let namespace = installation.manifests.account.namespace.clone();
    for node in ["own", "other"] {
        rich_node(cluster, &format!("{namespace}-{node}")).await;
    }
    let stale = stale_token(installation, &format!("{namespace}-stale")).await;
    let claimless = cluster
        .token(&namespace, &installation.account.name)
        .await
        .unwrap();
    let clients = Clients {
        own: installation.client_for(&format!("{namespace}-own")).await,
        claimless: installation.client(&claimless).await,
        stale: installation.client(&stale).await,
    };
    let mut missed = Vec::new();
    for policy in [nodes(&namespace), events(&namespace)] {
        for (index, (client, request, message)) in policy.refused.into_iter().enumerate() {
            let answer = request.dry().send(client(&clients)).await;
            if answer.refused_by() != By::Policy || !answer.message().contains(message) {
                missed.push((policy.name, index));
            }
        }
    }
    missed
}

#[tokio::test]
async fn without_any_one_validation_the_very_thing_that_it_refuses_is_not() {
    let Some(whole) = install("whole", None).await else {
        return;
    };
    assert_eq!(missed(&whole).await, []);
    for policy in [nodes(""), events("")] {
        let name = name(&whole, policy.name);
        let path =
            format!("/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies/{name}");
        let get = Request::new("", Method::GET, path, Value::Null);
        let installed = get.send(&whole.cluster.client().await.unwrap()).await.body;
        let validations = installed["spec"]["validations"].as_array().unwrap();
        assert_eq!(validations.len(), policy.refused.len());
        for (index, validation) in validations.iter().enumerate() {
            let namespace = format!("without-{}{index}", policy.name);
            let broken = install(&namespace, Some((policy.name, index)))
                .await
                .unwrap();
            let missed = missed(&broken).await;
            println!("without {}: {missed:?}", validation["expression"]);
            assert_eq!(missed, [(policy.name, index)]);
        }
    }
}
