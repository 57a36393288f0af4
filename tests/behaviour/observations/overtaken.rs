//! The Node changes between the decision and the patch.

use serde_json::{Value, json};
use testkit::agent::Agent;
use testkit::api::Verb;

use super::{GPUS, LABEL, READY, gates, open_last, said, set_status};
use crate::scene::{Gates, OnCluster, OnStandIn, TAINT, own_taints};

const GROUP: &str = "{name: group, anyOf: [{name: gpus, allocatable: {resource: nvidia.com/gpu}}, {name: none, file: {path: /none}}]}";

/// What makes `object` what the rules wait for, or not any more.
fn set(object: &mut Value, good: bool) {
    let (count, status) = if good { ("8", "True") } else { ("0", "False") };
    object["metadata"]["labels"]["example.com/kata"] = json!(good.to_string());
    object["status"]["allocatable"] = json!({"nvidia.com/gpu": count});
    object["status"]["conditions"] = json!([{"type": "Ready", "status": status}]);
}

/// Opens the gate `last` while the agent does not see that the Node has changed.
async fn overtake(gates: Gates) -> (OnStandIn, Agent) {
    let scene = OnStandIn::with(&[TAINT], gates).await;
    scene.server.update_node("node", |node| set(node, true));
    let agent = scene.agent(&[]);
    said(&agent, "last", "closed", "503").await;
    scene.server.pause_watches(true);
    scene.server.update_node("node", |node| set(node, false));
    scene.gates.health.set(200);
    (scene, agent)
}

fn taints(scene: &OnStandIn) -> Vec<String> {
    own_taints(&scene.server.node("node").unwrap())
}

#[tokio::test]
async fn a_taint_stays_if_the_node_ceases_to_be_good_before_the_patch_arrives() {
    for (gate, name) in [
        (GPUS, "gpus"),
        (LABEL, "kata"),
        (READY, "ready"),
        (GROUP, "group"),
    ] {
        let (scene, agent) = overtake(gates(&[gate]).await).await;
        said(&agent, name, "closed", "").await;
        assert_eq!(taints(&scene), [TAINT], "{gate}");
        assert_eq!(
            scene.verbs(),
            [Verb::Watch, Verb::Patch, Verb::Get],
            "{gate}"
        );
        // The conflict is no trouble.
        let is_loud = |line: &Value| line["level"] == "WARN" || line["level"] == "ERROR";
        assert!(!agent.logs().iter().any(is_loud), "{:#?}", agent.logs());
        scene.server.update_node("node", |node| set(node, true));
        scene.server.pause_watches(false);
        scene.wait_for_taints(&[]).await;
    }
}

#[tokio::test]
async fn a_taint_stays_if_the_node_leaves_the_selector_before_the_patch_arrives() {
    let gates = gates(&[]).await;
    let port = gates.health.port();
    gates.configure(&format!(
        "- name: a\n  taint: {{key: example.com/not-ready}}\n  nodeSelector: {{example.com/kata: \"true\"}}\n  gates:\n  - {{name: last, httpGet: {{port: {port}, path: /healthz}}, periodSeconds: 0.05}}\n"
    ));
    let (scene, agent) = overtake(gates).await;
    scene.wait_for(Verb::Get, 1).await;
    drop(agent);
    assert_eq!(taints(&scene), [TAINT]);
}

#[tokio::test]
async fn a_node_that_is_written_all_the_time_loses_its_taint_all_the_same_and_an_old_version_is_refused()
 {
    let Some(scene) = OnCluster::with("written", &[TAINT], gates(&[GPUS]).await).await else {
        return;
    };
    let status = json!({"allocatable": {"nvidia.com/gpu": "8"}});
    set_status(scene.cluster, &["node", scene.name], &status).await;
    let old = r#"[{"op": "test", "path": "/metadata/resourceVersion", "value": "1"}]"#;
    let old = ["patch", "node", scene.name, "--type=json", "--patch", old];
    let refused = scene.cluster.kubectl(&old).await.unwrap_err();
    let refused = format!("{refused:#}");
    assert!(refused.contains("The request is invalid"), "{refused}");
    let agent = scene.agent(&[]);
    said(&agent, "gpus", "open", "").await;
    let writer = async |resource: &str| {
        for count in 0_u64.. {
            let beat = json!({"allocatable": {resource: count.to_string()}});
            set_status(scene.cluster, &["node", scene.name], &beat).await;
        }
    };
    let writers = async {
        tokio::join!(
            writer("example.com/a"),
            writer("example.com/b"),
            writer("example.com/c"),
            writer("example.com/d"),
        )
    };
    tokio::select! {
        _ = writers => {}
        () = open_last(&scene) => {}
    }
}
