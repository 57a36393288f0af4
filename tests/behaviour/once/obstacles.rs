//! What keeps `untaint run --once` from its end is told at once, and again when time is up.

use serde_json::Value;
use testkit::agent::Agent;
use testkit::api::{Answer, Verb};

use crate::scene::{FOREIGN, Gates, OnCluster, OnStandIn, TAINT};

/// Grants a `ServiceAccount` of this name these verbs for Nodes and no others. Returns a kubeconfig file of it.
async fn restricted(scene: &OnCluster, verbs: &str) -> std::path::PathBuf {
    let name = scene.name;
    let objects = format!(
        "
apiVersion: v1
kind: ServiceAccount
metadata: {{name: {name}, namespace: default}}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {{name: {name}}}
rules: [{{apiGroups: [''], resources: [nodes], verbs: [{verbs}]}}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {{name: {name}}}
roleRef: {{apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: {name}}}
subjects: [{{kind: ServiceAccount, name: {name}, namespace: default}}]
"
    );
    scene.cluster.apply(&objects).await.unwrap();
    let token = scene.cluster.token_for_node("default", name, name).await;
    let file = scene
        .cluster
        .kubeconfig(scene.gates.dir.path(), &token.unwrap());
    file.unwrap()
}

fn contains(text: &Value, part: &str) -> bool {
    text.as_str().is_some_and(|text| text.contains(part))
}

#[tokio::test]
async fn a_permission_that_is_missing_is_told_with_the_servers_message_at_once_and_at_the_end() {
    let cases = [
        (
            "once-no-get",
            "list, watch, patch",
            "get",
            "failed to read the Node; trying again",
        ),
        (
            "once-no-watch",
            "get, list, patch",
            "watch",
            "failed to watch the Node; trying again",
        ),
        (
            "once-no-patch",
            "get, list, watch",
            "patch",
            "the server refused the removal",
        ),
    ];
    for (name, verbs, missing, message) in cases {
        let Some(scene) = OnCluster::with(name, &[TAINT, FOREIGN], Gates::open().await).await
        else {
            return;
        };
        let kubeconfig = restricted(&scene, verbs).await;
        let once = ["--once", "--settle", "0s", "--timeout", "6s"];
        let mut agent = scene.gates.agent(name, &kubeconfig, &once);
        assert_eq!(agent.exit_code().await.unwrap(), 3, "{name}");
        let cannot = format!("cannot {missing} resource \\\"nodes\\\"");
        named_at_the_end(&agent, &cannot).await;
        let lines = agent.logs();
        let told: Vec<_> = lines
            .iter()
            .filter(|line| line["message"] == message && line["level"] == "WARN")
            .collect();
        assert_eq!(told.len(), 1, "{name}: {lines:#?}");
        assert!(told[0].to_string().contains(&cannot), "{told:?}");
    }
}

/// Waits for an error that has this part, as it is in JSON.
async fn named_at_the_end(agent: &Agent, part: &str) {
    let names_it = |line: &Value| line["level"] == "ERROR" && line.to_string().contains(part);
    agent.wait_for_log(names_it).await.unwrap();
}

#[tokio::test]
async fn each_answer_that_keeps_it_from_its_end_is_named_when_time_is_up() {
    let cases = [
        (
            Verb::Get,
            Answer::not_found("node"),
            "404: nodes \\\"node\\\" not found",
        ),
        (
            Verb::Get,
            Answer::failure(401, "Unauthorized", "Unauthorized"),
            "401: Unauthorized",
        ),
        (
            Verb::Get,
            Answer::failure(500, "InternalError", "etcd is away"),
            "500: etcd is away",
        ),
        (Verb::Get, Answer::Hang, "no answer within 5 s"),
        (
            Verb::Patch,
            Answer::conflict("node"),
            "409: Operation cannot",
        ),
        (
            Verb::Patch,
            Answer::failure(401, "Unauthorized", "Unauthorized"),
            "401: Unauthorized",
        ),
        (Verb::Patch, Answer::not_found("node"), "404: nodes"),
        (
            Verb::Watch,
            Answer::failure(404, "NotFound", "no such thing"),
            "404: no such thing",
        ),
        (
            Verb::Watch,
            Answer::failure(401, "Unauthorized", "Unauthorized"),
            "401: Unauthorized",
        ),
    ];
    let runs = cases.map(|(verb, answer, expected)| async move {
        let scene = OnStandIn::with(&[TAINT], Gates::open().await).await;
        scene.server.respond_next(verb, 1000, answer);
        let mut agent = scene.agent(&["--once", "--settle", "0s", "--timeout", "8s"]);
        assert_eq!(agent.exit_code().await.unwrap(), 3, "{expected}");
        named_at_the_end(&agent, expected).await;
        let lines = agent.logs();
        if verb == Verb::Watch {
            let is_end =
                |line: &&Value| line["level"] == "ERROR" && line.to_string().contains(expected);
            assert_eq!(lines.iter().filter(is_end).count(), 1, "{lines:#?}");
        }
        let told = lines.iter().find(|line| {
            !["DEBUG", "ERROR"].contains(&line["level"].as_str().unwrap_or_default())
                && line["error"].to_string().contains(expected)
        });
        let is_conflict = expected.starts_with("409");
        assert!(
            told.is_some() || is_conflict,
            "{verb:?} {expected}: {lines:#?}"
        );
    });
    futures_util::future::join_all(runs).await;
}

#[tokio::test]
async fn a_node_that_karpenter_has_not_registered_is_named_when_time_is_up() {
    let scene = OnStandIn::with(&[], Gates::open().await).await;
    scene.server.update_node("node", |node| {
        node["metadata"]["labels"] = serde_json::json!({"karpenter.sh/nodepool": "p"});
    });
    let mut agent = scene.agent(&["--once", "--settle", "0s", "--timeout", "1s"]);
    assert_eq!(agent.exit_code().await.unwrap(), 3);
    let late = agent
        .wait_for_log(|line| line["level"] == "ERROR")
        .await
        .unwrap();
    assert!(
        contains(&late["waits_for"], "Karpenter has not registered the node"),
        "{late}"
    );
}
