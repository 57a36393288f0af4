//! Whom the policies judge where names do not say it, and by which rules.

use kube::Client;
use serde_json::{Value, json};
use testkit::cluster;
use untaint::manifests::Part;

use crate::installation::{CONFIGURATION, Installation, OF_THE_NEIGHBOUR, Options};
use crate::request::{Answer, By, JSON_PATCH, MERGE, Request, STRATEGIC};
use crate::ways::kustomize;

const FOREIGN: &str = "foreign.example/two:NoSchedule";

fn labels(node: &str) -> Request {
    let patch = json!({"metadata": {"labels": {"x": "y"}}});
    Request::patch("", format!("/api/v1/nodes/{node}"), MERGE, patch).dry()
}

/// The taint of this index removed.
fn removal(node: &str, index: usize) -> Request {
    removals(node, &[index])
}

/// The taints of these indexes removed, the highest first.
fn removals(node: &str, indexes: &[usize]) -> Request {
    let remove = |index| json!({"op": "remove", "path": format!("/spec/taints/{index}")});
    let remove = indexes.iter().map(remove).collect();
    Request::patch("", format!("/api/v1/nodes/{node}"), JSON_PATCH, remove).dry()
}

fn addition(node: &str, taint: &Value) -> Request {
    let add = json!([{"op": "add", "path": "/spec/taints/-", "value": taint}]);
    Request::patch("", format!("/api/v1/nodes/{node}"), JSON_PATCH, add).dry()
}

fn condition(node: &str, kind: &str) -> Request {
    let body = json!({"status": {"conditions": [{"type": kind, "status": "True"}]}});
    Request::patch("", format!("/api/v1/nodes/{node}/status"), STRATEGIC, body).dry()
}

async fn refused_by(request: &Request, client: &Client) -> By {
    request.send(client).await.refused_by()
}

/// Of one text, made of two configurations, one with a prefix and one as it was written.
#[tokio::test]
async fn two_installations_for_accounts_of_one_name_are_each_held_to_their_own_rules() {
    let Some(one) = Installation::new("one-name", Options::default()).await else {
        return;
    };
    let other = one.neighbour(OF_THE_NEIGHBOUR).await;
    let node = "one-name";
    let taints = [
        "example.com/not-ready:NoExecute",
        "foreign.example/one:NoSchedule",
        "example.com/storage:NoSchedule",
        "example.com/storage:NoExecute",
        "example.com/gpu:NoExecute",
        FOREIGN,
    ];
    one.cluster.create_node(node, &taints).await.unwrap();
    let other_client = other.client_for(node).await;
    // The policy of the one lets it through, since the role of the other has this key.
    other
        .wait_until_refused(&other_client, &removal(node, 2))
        .await;
    let one_client = one.client_for(node).await;
    let (mine, policy) = (By::Nobody, By::Policy);
    for (client, expected) in [
        (&one_client, [mine, policy, mine, policy, policy, policy]),
        (&other_client, [policy, mine, policy, mine, mine, policy]),
    ] {
        for (index, expected) in expected.into_iter().enumerate() {
            let answer = removal(node, index).send(client).await;
            assert_eq!(
                answer.refused_by(),
                expected,
                "{}: {answer:?}",
                taints[index]
            );
        }
        assert_eq!(refused_by(&labels(node), client).await, policy);
    }
    for (client, kind, expected) in [
        (&one_client, "example.com/StorageReady", mine),
        (&one_client, "Other", policy),
        (&other_client, "Other", mine),
        (&other_client, "example.com/StorageReady", policy),
    ] {
        let answer = condition(node, kind).send(client).await;
        assert_eq!(answer.refused_by(), expected, "{kind}: {answer:?}");
    }
}

/// For example, as somebody else applies it.
#[tokio::test]
async fn while_only_the_role_has_changed_an_account_can_do_what_the_role_says_and_nothing_else() {
    for fields in ["", "namePrefix: pre-\n"] {
        let namespace = format!("half-{}", fields.len());
        let Some(installation) = Installation::account(&namespace, Options::default()).await else {
            return;
        };
        let mut installation = installation;
        let prefix = if fields.is_empty() { "" } else { "pre-" };
        installation.account.name = format!("{prefix}agent");
        let apply = |installation: &Installation, parts: &[Part]| {
            let yaml = crate::installation::with_account(&installation.manifests, parts);
            let cluster = installation.cluster;
            async move {
                let yaml = kustomize(cluster, &yaml, fields).await;
                cluster.apply(&yaml).await.unwrap();
            }
        };
        apply(&installation, &[Part::Rbac, Part::Policy]).await;
        installation.in_force().await;
        let taints = [
            "example.com/not-ready:NoExecute",
            "example.com/new:NoExecute",
            FOREIGN,
            "example.com/new:NoSchedule",
            "example.com/new:PreferNoSchedule",
        ];
        let cluster = installation.cluster;
        cluster.create_node(&namespace, &taints).await.unwrap();
        let another = format!("{namespace}-another");
        cluster.create_node(&another, &taints).await.unwrap();
        let client = installation.client_for(&namespace).await;
        assert_eq!(
            refused_by(&removal(&namespace, 0), &client).await,
            By::Nobody
        );
        assert_eq!(
            refused_by(&removal(&namespace, 1), &client).await,
            By::Policy
        );

        let text = CONFIGURATION
            .replace("example.com/not-ready", "example.com/new")
            .replace("example.com/StorageReady", "example.com/NewReady");
        installation.manifests.configuration = untaint::config::parse(&text).unwrap();
        apply(&installation, &[Part::Rbac]).await;
        let new = removal(&namespace, 1);
        let let_through = async { while refused_by(&new, &client).await != By::Nobody {} };
        tokio::time::timeout(testkit::DEADLINE, let_through)
            .await
            .unwrap();
        for request in [
            removal(&namespace, 0),
            removal(&namespace, 2),
            removal(&another, 1),
            labels(&namespace),
            labels(&another),
            condition(&namespace, "example.com/StorageReady"),
        ] {
            let answer = request.send(&client).await;
            assert_eq!(
                answer.refused_by(),
                By::Policy,
                "{}: {answer:?}",
                request.uri
            );
        }
        let three = removals(&namespace, &[4, 3, 1]).send(&client).await;
        assert_eq!(three.refused_by(), By::Policy, "{three:?}");
        assert!(three.says("removed: example.com/new:"), "{three:?}");
        let storage = json!({"key": "example.com/storage", "effect": "NoSchedule"});
        let mut with_time = storage.clone();
        with_time["timeAdded"] = json!("2020-01-01T00:00:00Z");
        let gpu = json!({"key": "example.com/gpu", "effect": "NoSchedule"});
        for taint in [with_time, gpu] {
            let answer = addition(&namespace, &taint).send(&client).await;
            assert_eq!(answer.refused_by(), By::Policy, "{taint}: {answer:?}");
        }
        for request in [
            removals(&namespace, &[4, 1]),
            addition(&namespace, &storage),
            condition(&namespace, "example.com/NewReady"),
        ] {
            let answer = request.send(&client).await;
            assert_eq!(answer.code, 200, "{}: {answer:?}", request.body);
        }
    }
}

/// They have nothing to do with untaint, whatever permissions they have.
#[tokio::test]
async fn nobody_else_is_judged() {
    let Some(installation) = Installation::new("nobody-else", Options::default()).await else {
        return;
    };
    let cluster = installation.cluster;
    cluster
        .create_node("nobody-else", &[FOREIGN])
        .await
        .unwrap();
    let accounts = "
apiVersion: v1
kind: ServiceAccount
metadata: {name: administrator, namespace: nobody-else}
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: controller, namespace: nobody-else}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: nobody-else-administrator}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: cluster-admin}
subjects:
- {kind: ServiceAccount, name: administrator, namespace: nobody-else}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: nobody-else}
rules:
- {apiGroups: [\"\"], resources: [nodes, nodes/status], verbs: [\"*\"]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: nobody-else-controller}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: nobody-else}
subjects:
- {kind: ServiceAccount, name: controller, namespace: nobody-else}
---
# A person and a group with untaint's own role.
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: nobody-else-people}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: untaint.nobody-else.agent}
subjects:
- {kind: User, apiGroup: rbac.authorization.k8s.io, name: somebody}
- {kind: Group, apiGroup: rbac.authorization.k8s.io, name: 'system:nodes'}
";
    cluster.apply(accounts).await.unwrap();
    let admin = cluster.client().await.unwrap();
    let mut clients = vec![("a member of system:masters", admin.clone())];
    for account in ["administrator", "controller"] {
        let token = cluster.token("nobody-else", account).await.unwrap();
        clients.push((account, installation.client(&token).await));
    }
    let directory = tempfile::tempdir().unwrap();
    let kubelet = cluster
        .kubelet_kubeconfig(directory.path(), "nobody-else")
        .unwrap();
    clients.push(("a kubelet", cluster::client(&kubelet).await.unwrap()));
    for (who, client) in clients {
        let answer = granted(&labels("nobody-else"), &client).await;
        assert_eq!(answer.code, 200, "{who}: {answer:?}");
    }
    let mut by_a_person = labels("nobody-else");
    by_a_person.headers = vec![("Impersonate-User", "somebody".into())];
    let answer = granted(&by_a_person, &admin).await;
    assert_eq!(answer.code, 200, "{answer:?}");
}

/// The answer once the roles have taken effect.
async fn granted(request: &Request, client: &Client) -> Answer {
    let answer = async {
        loop {
            let answer = request.send(client).await;
            if answer.refused_by() != By::Rbac {
                return answer;
            }
        }
    };
    tokio::time::timeout(testkit::DEADLINE, answer)
        .await
        .unwrap()
}

/// With a role of somebody else's, which has no permissions but those that are needed.
#[tokio::test]
async fn an_account_with_the_name_that_was_written_is_judged_whatever_its_role_is() {
    let Some(installation) = Installation::account("own-role", Options::default()).await else {
        return;
    };
    installation.be_too_generous().await;
    installation.apply(&[Part::Policy]).await;
    installation.in_force().await;
    let node = "own-role";
    let taints = ["example.com/not-ready:NoExecute", FOREIGN];
    installation
        .cluster
        .create_node(node, &taints)
        .await
        .unwrap();
    let client = installation.client_for(node).await;
    assert_eq!(refused_by(&removal(node, 0), &client).await, By::Nobody);
    for request in [removal(node, 1), labels(node), condition(node, "Other")] {
        assert_eq!(refused_by(&request, &client).await, By::Policy);
    }
    let published: Value = condition(node, "example.com/StorageReady")
        .send(&client)
        .await
        .body;
    assert_eq!(published["kind"], "Node");
}
