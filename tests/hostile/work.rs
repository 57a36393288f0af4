//! The agent's own work, which nothing of this is in the way of.

use std::time::Duration;

use http::Method;
use jiff::Timestamp;
use kube::Client;
use serde_json::{Value, json};
use testkit::agent::{Agent, run_on};
use testkit::{DEADLINE, taints};
use tokio::time::timeout;
use untaint::manifests::Form;

use crate::events::{EVENTS, event};
use crate::installation::{Installation, Options};
use crate::request::{Answer, By, JSON_PATCH, MERGE, Request, STRATEGIC};
use crate::ways::Way;

const PROGRAM: &str = env!("CARGO_BIN_EXE_untaint");
const NOT_READY: &str = "node.kubernetes.io/not-ready:NoSchedule";

async fn patch(client: &Client, node: &str, operations: Value) -> Answer {
    let uri = format!("/api/v1/nodes/{node}?fieldManager=untaint");
    Request::patch("", uri, JSON_PATCH, operations)
        .send(client)
        .await
}

async fn condition(client: &Client, node: &str, kind: &str) -> Answer {
    let uri = format!("/api/v1/nodes/{node}/status?fieldManager=untaint");
    let body = json!({"status": {"conditions": [{"type": kind, "status": "True"}]}});
    Request::patch("", uri, STRATEGIC, body).send(client).await
}

#[tokio::test]
pub(crate) async fn what_the_rules_ask_for_is_let_through_and_only_where_they_ask_for_it() {
    let Some(shipped) = Installation::new("work", Options::default()).await else {
        return;
    };
    let cluster = shipped.cluster;
    let all = [
        "foreign.example/one:NoSchedule",
        "example.com/not-ready:NoExecute",
        "example.com/storage:NoSchedule",
        "example.com/not-ready=x:NoSchedule",
    ];
    cluster.create_node("work", &all).await.unwrap();
    let client = shipped.client_for("work").await;
    let node = "work";

    // One, then two in one patch.
    let answer = patch(
        &client,
        node,
        json!([{"op": "remove", "path": "/spec/taints/1"}]),
    )
    .await;
    assert_eq!(answer.code, 200, "{answer:?}");
    let two = json!([{"op": "remove", "path": "/spec/taints/2"}, {"op": "remove", "path": "/spec/taints/1"}]);
    let answer = patch(&client, node, two).await;
    assert_eq!(taints(&answer.body), [all[0], NOT_READY]);

    // Put back behind others, and where there are none.
    let storage = json!({"key": "example.com/storage", "effect": "NoSchedule"});
    let link = json!({"key": "example.com/link", "value": "up", "effect": "NoSchedule"});
    let append = |taint: &Value| json!([{"op": "add", "path": "/spec/taints/-", "value": taint}]);
    for taint in [&storage, &link] {
        let answer = patch(&client, node, append(taint)).await;
        assert_eq!(answer.code, 200, "{answer:?}");
    }
    cluster.set_taints(node, &[]).await.unwrap();
    let first = json!([{"op": "add", "path": "/spec/taints", "value": [storage]}]);
    let answer = patch(&client, node, first).await;
    assert_eq!(taints(&answer.body), ["example.com/storage:NoSchedule"]);
    // The last.
    let answer = patch(
        &client,
        node,
        json!([{"op": "remove", "path": "/spec/taints/0"}]),
    )
    .await;
    assert_eq!(answer.body["spec"], json!({}), "{answer:?}");
    let gpu = json!({"key": "example.com/gpu", "effect": "NoSchedule"});
    let answer = patch(
        &client,
        node,
        json!([{"op": "add", "path": "/spec/taints", "value": [gpu]}]),
    )
    .await;
    assert_eq!(answer.refused_by(), By::Policy, "{answer:?}");

    // A condition, twice; that of a rule for other nodes only there.
    for _ in 0..2 {
        let answer = condition(&client, node, "example.com/StorageReady").await;
        assert_eq!(answer.code, 200, "{answer:?}");
    }
    let answer = condition(&client, node, "example.com/GpuReady").await;
    assert_eq!(answer.refused_by(), By::Policy, "{answer:?}");
    cluster
        .create_node("work-gpu", &["example.com/gpu=x:NoExecute"])
        .await
        .unwrap();
    let client_gpu = shipped.client_for("work-gpu").await;
    let remove = || {
        patch(
            &client_gpu,
            "work-gpu",
            json!([{"op": "remove", "path": "/spec/taints/0"}]),
        )
    };
    assert_eq!(remove().await.refused_by(), By::Policy);
    let labels = json!({"metadata": {"labels": {"pool": "gpu"}}});
    cluster.patch_node("work-gpu", &labels).await.unwrap();
    let answer = condition(&client_gpu, "work-gpu", "example.com/GpuReady").await;
    assert_eq!(answer.code, 200, "{answer:?}");
    assert_eq!(remove().await.code, 200);

    // Here the server leaves these alone, and what changes nothing is nobody's concern.
    let source = json!({"configMap": {"namespace": "n", "name": "n", "kubeletConfigKey": "k"}});
    let before = cluster.node(node).await.unwrap();
    for ignored in [
        json!({"status": {"capacity": {"cpu": "64"}}}),
        json!({"spec": {"configSource": source}}),
        json!({"metadata": {"creationTimestamp": "2020-01-01T00:00:00Z"}}),
    ] {
        let answer = Request::patch("", "/api/v1/nodes/work", MERGE, ignored)
            .send(&client)
            .await;
        assert_eq!((answer.code, &answer.body), (200, &before));
    }

    let answer = Request::new("", Method::POST, EVENTS, event("work", node))
        .send(&client)
        .await;
    assert_eq!(answer.code, 201, "{answer:?}");
    let again = json!({"series": {"count": 2, "lastObservedTime": "2026-01-01T00:00:01.000000Z"}});
    let uri = format!("{EVENTS}/work");
    let answer = Request::patch("", uri, MERGE, again).send(&client).await;
    assert_eq!(answer.code, 200, "{answer:?}");
}

/// A rule for some Nodes that puts back a taint with a key of its own, and one that puts back its taint.
const RETAINTING: &str = "apiVersion: untaint/v1alpha1
kind: UntaintConfiguration
rules:
- name: own-key
  taint: {key: example.com/start, effect: NoSchedule}
  nodeSelector: {pool: a}
  gates: [{name: file, file: {path: /run/nonexistent/file}}]
  retaint: {key: example.com/lapsed}
- name: same-key
  taint: {key: example.com/link, value: up, effect: NoSchedule}
  nodeSelector: {pool: a}
  gates: [{name: file, file: {path: /run/nonexistent/file}}]
  retaint: {}
";

/// If the labels change, the agent must be able to take off what it has put back.
#[tokio::test]
async fn what_was_put_back_may_be_removed_whatever_the_labels_are_by_then_and_nothing_else() {
    let options = Options {
        configuration: RETAINTING.into(),
        ..Options::default()
    };
    let Some(shipped) = Installation::new("relabelled", options).await else {
        return;
    };
    let cluster = shipped.cluster;
    let taint = |key: &str, value: &str| json!({"key": format!("example.com/{key}"), "value": value, "effect": "NoSchedule"});
    for (pool, may_add, may_remove) in [
        (
            "a",
            ["lapsed", "link=up"].as_slice(),
            ["lapsed", "link=up", "start"].as_slice(),
        ),
        ("b", &[], &["lapsed", "link=up"]),
    ] {
        let node = format!("relabelled-{pool}");
        cluster.create_node(&node, &[]).await.unwrap();
        let labels = json!({"metadata": {"labels": {"pool": pool}}});
        cluster.patch_node(&node, &labels).await.unwrap();
        let client = shipped.client_for(&node).await;
        for named in [
            "lapsed",
            "link=up",
            "start",
            "lapsed=x",
            "link=down",
            "other",
        ] {
            let (key, value) = named.split_once('=').unwrap_or((named, ""));
            let taint = taint(key, value);
            let written = format!("example.com/{named}:NoSchedule");
            let expect = |answer: &Answer, may: &[&str]| {
                if may.contains(&named) {
                    assert_eq!(answer.code, 200, "{pool} {named}: {answer:?}");
                } else {
                    assert_eq!(
                        answer.refused_by(),
                        By::Policy,
                        "{pool} {named}: {answer:?}"
                    );
                }
            };
            cluster.set_taints(&node, &[NOT_READY]).await.unwrap();
            let add = json!([{"op": "add", "path": "/spec/taints/-", "value": taint}]);
            expect(&patch(&client, &node, add).await, may_add);
            cluster.set_taints(&node, &[&written]).await.unwrap();
            let remove = json!([{"op": "remove", "path": "/spec/taints/0"}]);
            let also = if pool == "a" { &["lapsed=x"][..] } else { &[] };
            let may_remove = [may_remove, also].concat();
            expect(&patch(&client, &node, remove).await, &may_remove);
        }
    }
}

/// An agent with this token and the configuration of the installation.
pub(crate) fn agent(installation: &Installation, node: &str, token: &str, more: &[&str]) -> Agent {
    let kubeconfig = installation.kubeconfig(token);
    let config = kubeconfig.with_file_name("config.yaml");
    let shown = untaint::config::show(&installation.manifests.configuration);
    std::fs::write(&config, shown).unwrap();
    let run = run_on(node, &config, &kubeconfig);
    Agent::start(PROGRAM, &[&run, more].concat(), &[]).unwrap()
}

#[tokio::test]
pub(crate) async fn in_every_form_the_agent_removes_its_taint_and_publishes_its_condition() {
    for form in [
        Form::Daemonset,
        Form::Sidecar,
        Form::InitContainer,
        Form::PostStart,
    ] {
        let name = format!("agent-{form:?}").to_lowercase();
        let options = Options {
            form,
            ..Options::default()
        };
        let Some(shipped) = Installation::new(&name, options).await else {
            return;
        };
        let all = [
            "foreign.example/one:NoSchedule",
            "example.com/not-ready:NoExecute",
        ];
        shipped.cluster.create_node(&name, &all).await.unwrap();
        let token = shipped
            .cluster
            .token_for_node(&name, &shipped.account.name, &name)
            .await
            .unwrap();
        let once: &[&str] = match form {
            Form::Daemonset | Form::Sidecar => &[],
            Form::InitContainer | Form::PostStart => &["--once"],
        };
        let mut agent = agent(&shipped, &name, &token, once);
        let wanted = |node: &Value| taints(node) == [all[0], NOT_READY];
        shipped.cluster.wait_for_node(&name, wanted).await.unwrap();
        if once.is_empty() {
            let is_told = |node: &Value| {
                let conditions = node["status"]["conditions"].as_array();
                conditions
                    .into_iter()
                    .flatten()
                    .any(|condition| condition["type"] == "example.com/StorageReady")
            };
            shipped.cluster.wait_for_node(&name, is_told).await.unwrap();
        } else {
            assert_eq!(agent.exit_code().await.unwrap(), 0);
        }
        assert_eq!(
            agent.count("the server refused the removal"),
            0,
            "{:#?}",
            agent.logs()
        );
    }
}

/// topograph#410 (A28).
#[tokio::test]
pub(crate) async fn an_agent_whose_token_says_nothing_of_a_node_says_so_once_and_tries_ever_more_rarely()
 {
    let configuration =
        crate::installation::CONFIGURATION.replace("  publishCondition:", "  # publishCondition:");
    let options = Options {
        configuration,
        ..Options::default()
    };
    let Some(shipped) = Installation::new("old", options).await else {
        return;
    };
    let cluster = shipped.cluster;
    cluster
        .create_node("old", &["example.com/not-ready:NoExecute"])
        .await
        .unwrap();
    let token = cluster.token("old", &shipped.account.name).await.unwrap();
    let agent = agent(&shipped, "old", &token, &["--listen", "off"]);
    let refused = agent
        .wait_for_message("the server refused the removal")
        .await
        .unwrap();
    let error = refused["error"].as_str().unwrap();
    assert!(error.contains("it has no claim authentication.kubernetes.io/node-name; tokens of pods have it from Kubernetes 1.30 on"), "{refused}");

    let user = shipped.account.user();
    let fourth = async {
        loop {
            let patches = cluster.requests(|entry| {
                entry.user == user
                    && entry.uri.starts_with("/api/v1/nodes/old?")
                    && entry.verb == "patch"
                    && !entry.uri.contains("dryRun")
            });
            let patches = patches.await.unwrap();
            if patches.len() >= 4 {
                return patches;
            }
        }
    };
    let patches = timeout(DEADLINE, fourth).await.unwrap();
    let at = |index: usize| patches[index].received.parse::<Timestamp>().unwrap();
    // Each at least half of 1 s, 2 s and 4 s after the one before.
    for (index, least) in [500, 1000, 2000].into_iter().enumerate() {
        let wait = Duration::try_from(at(index + 1).duration_since(at(index))).unwrap();
        assert!(
            wait >= Duration::from_millis(least),
            "{wait:?}: {patches:#?}"
        );
    }
    // Two policies refuse it there, in turn, and each with its name.
    if Way::of_this_test() != Way::SideBySide {
        assert_eq!(agent.count("the server refused the removal"), 1);
    }
}
