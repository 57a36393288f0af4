//! The removal of a taint when its gates open.

mod waited;

use std::time::Duration;

use testkit::agent::Agent;
use testkit::api::{Answer, Verb};

use crate::scene::{FOREIGN, Gates, OnCluster, OnStandIn, PROGRAM, TAINT};

#[tokio::test]
async fn a_taint_waits_while_a_gate_is_not_open_and_the_reasons_are_told() {
    let Some(scene) = OnCluster::with("waits", &[TAINT, FOREIGN], Gates::closed().await).await
    else {
        return;
    };
    let agent = scene.agent(&["--listen", "127.0.0.1:0"]);
    let conflist = agent
        .wait_for_log(|line| line["gate"] == "conflist" && line["state"] != "unknown")
        .await
        .unwrap();
    assert!(
        conflist["reason"]
            .as_str()
            .unwrap()
            .contains("does not exist"),
        "{conflist}"
    );
    scene.gates.write_conflist();
    agent
        .wait_for_log(|line| line["gate"] == "conflist" && line["state"] == "open")
        .await
        .unwrap();
    let health = agent
        .wait_for_log(|line| line["gate"] == "agent" && line["state"] != "unknown")
        .await
        .unwrap();
    assert!(
        health["reason"].as_str().unwrap().contains("503"),
        "{health}"
    );
    scene.gates.health.wait_for_requests(3).await.unwrap();

    let status = agent.status().await.unwrap();
    let rule = &status["rules"][0];
    assert_eq!(
        (rule["name"].as_str(), rule["decision"].as_str()),
        (Some("cni"), Some("waiting")),
        "{status:#}"
    );
    assert_eq!(rule["gates"][0]["state"], "open");
    assert_eq!(rule["gates"][1]["state"], "closed");
    assert!(
        rule["gates"][1]["message"]
            .as_str()
            .unwrap()
            .contains("503")
    );
    assert_eq!(scene.taints().await, [TAINT, FOREIGN]);
}

#[tokio::test]
async fn a_taint_whose_gates_are_open_is_removed_by_one_narrow_patch_and_two_requests_in_all() {
    let Some(scene) = OnCluster::with("removed", &[FOREIGN, TAINT], Gates::closed().await).await
    else {
        return;
    };
    let agent = scene.agent(&[]);
    agent.wait_for_message("saw the taint").await.unwrap();
    scene.gates.open_both();
    scene.wait_for_taints(&[FOREIGN]).await;
    let removed = agent.wait_for_message("removed the taint").await.unwrap();
    assert_eq!(
        (&removed["rule"], &removed["key"]),
        (&"cni".into(), &"example.com/not-ready".into())
    );

    let requests = scene.requests().await;
    let verbs: Vec<_> = requests
        .iter()
        .map(|request| request.verb.as_str())
        .collect();
    assert_eq!(verbs, ["watch", "patch"], "{requests:#?}");
    assert!(
        requests[0]
            .uri
            .contains("fieldSelector=metadata.name%3Dremoved"),
        "{}",
        requests[0].uri
    );
    assert!(
        requests[1].uri.contains("fieldManager=untaint"),
        "{}",
        requests[1].uri
    );
    assert!(
        requests
            .iter()
            .all(|request| request.user_agent.starts_with("untaint/"))
    );
    assert!(
        requests
            .iter()
            .all(|request| request.user == "system:serviceaccount:untaint:untaint")
    );
}

#[tokio::test]
async fn every_effect_and_value_of_the_key_is_removed_and_similar_keys_are_kept() {
    let all = [
        "k=true:NoSchedule",
        "k:NoExecute",
        "k2=x:NoSchedule",
        "k/k:NoSchedule",
    ];
    let Some(scene) = OnCluster::with("effects", &all, Gates::open().await).await else {
        return;
    };
    scene
        .gates
        .configure("- {name: any, taint: {key: k}, gates: []}\n");
    let agent = scene.agent(&[]);
    scene
        .wait_for_taints(&["k2=x:NoSchedule", "k/k:NoSchedule"])
        .await;
    assert_eq!(
        scene
            .requests()
            .await
            .iter()
            .filter(|request| request.verb == "patch")
            .count(),
        1
    );
    drop(agent);
}

#[tokio::test]
async fn a_named_effect_and_an_empty_value_are_matched_exactly() {
    let all = [
        "k=true:NoSchedule",
        "k:NoExecute",
        "v=x:NoSchedule",
        "v:NoExecute",
    ];
    let Some(scene) = OnCluster::with("exact", &all, Gates::open().await).await else {
        return;
    };
    scene.gates.configure(
        "- {name: effect, taint: {key: k, effect: NoExecute}, gates: []}\n- {name: empty, taint: {key: v, value: \"\"}, gates: []}\n",
    );
    let _agent = scene.agent(&[]);
    scene
        .wait_for_taints(&["k=true:NoSchedule", "v=x:NoSchedule"])
        .await;
}

#[tokio::test]
async fn rules_are_independent_one_taint_missing_or_waiting_does_not_hold_the_other_up() {
    let Some(scene) = OnCluster::with(
        "independent",
        &[TAINT, "two:NoSchedule"],
        Gates::closed().await,
    )
    .await
    else {
        return;
    };
    let more = "- {name: two, taint: {key: two}, gates: []}\n- {name: three, taint: {key: three}, gates: []}\n";
    scene.gates.configure(&(scene.gates.rule("") + more));
    let _agent = scene.agent(&[]);
    scene.wait_for_taints(&[TAINT]).await;
}

#[tokio::test]
async fn success_is_only_when_the_returned_node_lacks_the_taint() {
    let scene = OnStandIn::with(&[TAINT], Gates::closed().await).await;
    let untouched = scene.server.node("node").unwrap();
    let reply = testkit::api::Reply {
        status: 200,
        headers: http::HeaderMap::new(),
        body: untouched,
    };
    scene
        .server
        .respond_next(Verb::Patch, 1, Answer::Reply(reply));
    let agent = scene.agent(&[]);
    scene.gates.open_both();
    let undone = "the server accepted the removal, but the taint is there again";
    agent.wait_for_message(undone).await.unwrap();
    scene.wait_for_taints(&[]).await;
    agent.wait_for_message("removed the taint").await.unwrap();
    assert_eq!(scene.count(Verb::Patch), 2);
    assert_eq!(agent.count("removed the taint"), 1);
}

#[tokio::test]
async fn watch_and_patch_share_one_http2_connection() {
    let scene = OnStandIn::with(&[TAINT], Gates::open().await).await;
    let _agent = scene.agent(&[]);
    scene.wait_for_taints(&[]).await;
    let requests = scene.server.requests();
    assert_eq!(scene.verbs(), [Verb::Watch, Verb::Patch]);
    assert!(
        requests
            .iter()
            .all(|request| request.connection == 0 && request.version == http::Version::HTTP_2)
    );
}

#[tokio::test]
async fn a_server_that_speaks_only_http1_is_served_too() {
    let options = testkit::api::Options {
        http2: false,
        ..testkit::api::Options::default()
    };
    let scene = OnStandIn::with_options(options, &[TAINT], Gates::open().await).await;
    let _agent = scene.agent(&[]);
    scene.wait_for_taints(&[]).await;
    assert!(
        scene
            .server
            .requests()
            .iter()
            .all(|request| request.version == http::Version::HTTP_11)
    );
}

#[tokio::test]
async fn a_dry_run_decides_and_reports_and_writes_nothing() {
    let Some(scene) = OnCluster::with("dry", &[TAINT], Gates::open().await).await else {
        return;
    };
    let mut agent = scene.agent(&["--dry-run", "--once", "--settle", "0s"]);
    agent
        .wait_for_message("would remove the taint (dry run)")
        .await
        .unwrap();
    assert_eq!(agent.exit_code().await.unwrap(), 0);
    assert!(
        scene
            .requests()
            .await
            .iter()
            .all(|request| request.verb != "patch")
    );
    assert_eq!(scene.taints().await, [TAINT]);
}

#[tokio::test]
async fn one_rule_can_be_given_without_a_file() {
    let Some(scene) = OnCluster::with("flags", &[TAINT, FOREIGN], Gates::closed().await).await
    else {
        return;
    };
    let ready = scene.gates.dir.path().join("ready");
    let url = format!("http://localhost:{}/healthz", scene.gates.health.port());
    let (kubeconfig, file) = (scene.kubeconfig.to_str().unwrap(), ready.to_str().unwrap());
    let run = ["run", "--once", "--settle", "100ms"];
    let rule = ["--taint", TAINT, "--http-get", &url, "--file", file];
    let arguments = [&run[..], &["--kubeconfig", kubeconfig], &rule].concat();
    let mut agent = Agent::start(PROGRAM, &arguments, &[("NODE_NAME", "flags")]).unwrap();
    let evaluated =
        |line: &serde_json::Value| line["gate"] == "file-1" && line["state"] != "unknown";
    agent.wait_for_log(evaluated).await.unwrap();
    scene.gates.health.set(200);
    std::fs::write(&ready, "").unwrap();
    let ended = agent.ended(Duration::from_secs(20)).await.unwrap();
    assert_eq!(ended.code(), Some(0));
    assert_eq!(scene.taints().await, [FOREIGN]);
}

#[tokio::test]
async fn a_rule_for_other_nodes_does_not_claim_the_removal_of_the_same_taint_here() {
    let scene = OnStandIn::with(&[TAINT], Gates::closed().await).await;
    let elsewhere = "- {name: elsewhere, taint: {key: example.com/not-ready}, nodeSelector: {pool: a}, gates: []}\n";
    scene
        .gates
        .configure(&(elsewhere.to_owned() + &scene.gates.rule("  nodeSelector: {pool: b}\n")));
    scene.server.update_node("node", |node| {
        node["metadata"]["labels"] = serde_json::json!({"pool": "b"});
    });
    let agent = scene.agent(&["--listen", "127.0.0.1:0"]);
    scene.gates.open_both();
    scene.wait_for_taints(&[]).await;
    let removed = agent.wait_for_message("removed the taint").await.unwrap();
    assert_eq!(removed["rule"], "cni");
    assert_eq!(agent.count("removed the taint"), 1);
    let status = agent.status().await.unwrap();
    assert_eq!(status["rules"][0]["decision"], "not-selected");
    assert_eq!(status["rules"][0]["lastRemoval"], serde_json::Value::Null);
}
