//! `/metrics` and its documents.

mod documents;
mod page;
mod reloads;

use std::collections::BTreeMap;

use testkit::api::{Answer, Options, TOKEN, Verb};
use testkit::promtool::Promtool;

use crate::scene::{FOREIGN, Gates, OnCluster, OnStandIn, TAINT};
pub(crate) use page::Page;

pub(crate) const LISTEN: [&str; 2] = ["--listen", "127.0.0.1:0"];

#[tokio::test]
async fn a_removal_is_counted_with_its_times_and_its_requests_and_adds_no_series() {
    let Some(scene) = OnCluster::with("counted", &[TAINT], Gates::closed().await).await else {
        return;
    };
    let agent = scene.agent(&LISTEN);
    for gate in ["conflist", "agent"] {
        agent
            .wait_for_log(|line| line["gate"] == gate && line["state"] == "closed")
            .await
            .unwrap();
    }
    agent.wait_for_message("watching the Node").await.unwrap();
    let waiting = Page::of(&agent).await;
    waiting.has(&[
        (r#"untaint_build_info{version="0.1.0"}"#, "1"),
        ("untaint_api_watching", "1"),
        (r#"untaint_rule_state{rule="cni",state="waiting"}"#, "1"),
        (r#"untaint_rule_state{rule="cni",state="absent"}"#, "0"),
        (
            r#"untaint_gate_state{rule="cni",gate="agent",state="closed"}"#,
            "1",
        ),
        (
            r#"untaint_gate_state{rule="cni",gate="agent",state="unknown"}"#,
            "0",
        ),
        (r#"untaint_rule_removals_total{rule="cni"}"#, "0"),
        (
            r#"untaint_rule_seen_to_removed_seconds_count{rule="cni"}"#,
            "0",
        ),
        (
            r#"untaint_api_requests_total{verb="patch",code="200"}"#,
            "0",
        ),
    ]);
    let started = waiting.number("process_start_time_seconds");
    let now = std::time::UNIX_EPOCH.elapsed().unwrap().as_secs_f64();
    assert!((0.0..60.0).contains(&(now - started)), "{started}");

    scene.gates.open_both();
    agent.wait_for_message("removed the taint").await.unwrap();
    let done = Page::of(&agent).await;
    done.has(&[
        (r#"untaint_rule_state{rule="cni",state="waiting"}"#, "0"),
        (r#"untaint_rule_state{rule="cni",state="absent"}"#, "1"),
        (
            r#"untaint_gate_state{rule="cni",gate="agent",state="closed"}"#,
            "0",
        ),
        (
            r#"untaint_gate_state{rule="cni",gate="agent",state="unknown"}"#,
            "1",
        ),
        (r#"untaint_rule_removals_total{rule="cni"}"#, "1"),
        (
            r#"untaint_rule_seen_to_removed_seconds_count{rule="cni"}"#,
            "1",
        ),
        (
            r#"untaint_rule_ready_to_removed_seconds_count{rule="cni"}"#,
            "1",
        ),
        (
            r#"untaint_api_request_duration_seconds_count{verb="patch"}"#,
            "1",
        ),
        (
            r#"untaint_api_request_duration_seconds_bucket{verb="patch",le="5"}"#,
            "1",
        ),
    ]);
    let seen = done.number(r#"untaint_rule_seen_to_removed_seconds_sum{rule="cni"}"#);
    let ready = done.number(r#"untaint_rule_ready_to_removed_seconds_sum{rule="cni"}"#);
    assert!(0.0 < ready && ready < seen && seen < 60.0, "{ready} {seen}");
    for verb in ["get", "list", "watch", "patch"] {
        let asked = scene.all_requests().await.into_iter();
        let asked = asked.filter(|it| it.verb == verb && it.code == Some(200));
        let asked = asked.count();
        let series = format!(r#"untaint_api_requests_total{{verb="{verb}",code="200"}}"#);
        done.has(&[(&series, &asked.to_string())]);
    }
    assert!(
        waiting.series.keys().eq(done.series.keys()),
        "{waiting:#?} {done:#?}"
    );
    if let Some(promtool) = Promtool::get().await {
        promtool
            .run(&["check", "metrics"], &done.text)
            .await
            .unwrap();
    }
}

#[tokio::test]
async fn a_removal_by_somebody_else_before_the_rule_is_ready_is_counted() {
    let Some(scene) = OnCluster::with("counted-other", &[TAINT], Gates::closed().await).await
    else {
        return;
    };
    let agent = scene.agent(&LISTEN);
    agent.wait_for_message("saw the taint").await.unwrap();
    scene.set_taints(&[FOREIGN]).await;
    let message = "another program removed the taint before the rule was ready";
    agent.wait_for_message(message).await.unwrap();
    Page::of(&agent).await.has(&[
        (r#"untaint_rule_removals_by_others_total{rule="cni"}"#, "1"),
        (r#"untaint_rule_removals_total{rule="cni"}"#, "0"),
        (r#"untaint_rule_state{rule="cni",state="absent"}"#, "1"),
    ]);
}

#[tokio::test]
async fn a_denial_is_counted_as_often_as_it_is_met_and_shown_for_as_long_as_it_lasts() {
    let Some(scene) = OnCluster::with("counted-denied", &[TAINT], Gates::open().await).await else {
        return;
    };
    // The rights of the agent without the patch.
    for command in [
        "create serviceaccount reader",
        "create clusterrole node-reader --verb=get,list,watch --resource=nodes",
        "create clusterrolebinding node-reader --clusterrole=node-reader --serviceaccount=default:reader",
    ] {
        let words: Vec<_> = command.split(' ').collect();
        scene.cluster.kubectl(&words).await.unwrap();
    }
    let token = scene
        .cluster
        .token_for_node("default", "reader", scene.name);
    let directory = scene.gates.dir.path();
    scene
        .cluster
        .kubeconfig(directory, &token.await.unwrap())
        .unwrap();
    let agent = scene.agent(&LISTEN);
    let message = "the server refused the removal";
    agent.wait_for_message(message).await.unwrap();
    let is_again = |line: &serde_json::Value| {
        let notification = line["notification"].as_str().unwrap_or_default();
        line["level"] == "DEBUG" && notification.contains("Denied")
    };
    agent.wait_for_log(is_again).await.unwrap();
    let denied = Page::of(&agent).await;
    denied.has(&[
        (r#"untaint_rule_denied{rule="cni"}"#, "1"),
        (r#"untaint_rule_denials_total{rule="cni"}"#, "2"),
        (
            r#"untaint_api_requests_total{verb="patch",code="403"}"#,
            "2",
        ),
        (r#"untaint_rule_state{rule="cni",state="ready"}"#, "1"),
    ]);
    let grant = "patch clusterrole node-reader --type=json --patch";
    let mut words: Vec<_> = grant.split(' ').collect();
    words.push(r#"[{"op": "add", "path": "/rules/0/verbs/-", "value": "patch"}]"#);
    scene.cluster.kubectl(&words).await.unwrap();
    agent.wait_for_message("removed the taint").await.unwrap();
    Page::of(&agent).await.has(&[
        (r#"untaint_rule_denied{rule="cni"}"#, "0"),
        (r#"untaint_rule_removals_total{rule="cni"}"#, "1"),
    ]);
}

#[tokio::test]
async fn a_fight_is_counted_and_shown() {
    let Some(scene) = OnCluster::with("counted-fight", &[TAINT], Gates::open().await).await else {
        return;
    };
    let rule = "- {name: cni, taint: {key: example.com/not-ready}, gates: []}\n";
    scene.gates.configure(rule);
    let agent = scene.agent(&LISTEN);
    for _ in 0..5 {
        scene.wait_for_taints(&[]).await;
        scene.set_taints(&[TAINT]).await;
    }
    let message = "another program keeps putting the taint back; removing it less often";
    agent.wait_for_message(message).await.unwrap();
    Page::of(&agent).await.has(&[
        (r#"untaint_rule_fights_total{rule="cni"}"#, "1"),
        (r#"untaint_rule_removals_total{rule="cni"}"#, "5"),
        (r#"untaint_rule_state{rule="cni",state="limited"}"#, "1"),
    ]);
}

#[tokio::test]
async fn a_deadline_that_has_passed_is_counted_and_shown() {
    let Some(scene) = OnCluster::with("counted-late", &[TAINT], Gates::closed().await).await else {
        return;
    };
    let deadline = "  deadline: {after: 1s}\n";
    scene.gates.configure(&scene.gates.rule(deadline));
    let agent = scene.agent(&LISTEN);
    let message = "the taint has been there for too long";
    agent.wait_for_message(message).await.unwrap();
    Page::of(&agent).await.has(&[
        (r#"untaint_rule_deadlines_total{rule="cni"}"#, "1"),
        (r#"untaint_rule_overdue{rule="cni"}"#, "1"),
    ]);
}

#[tokio::test]
async fn every_request_is_counted_by_its_verb_and_by_what_became_of_it() {
    let options = Options {
        streaming_lists: false,
        ..Options::default()
    };
    let scene = OnStandIn::with_options(options, &[FOREIGN], Gates::open().await).await;
    scene.server.accept_tokens(&[TOKEN]);
    let agent = scene.agent(&LISTEN);
    agent.wait_for_message("watching the Node").await.unwrap();
    std::fs::write(scene.gates.dir.path().join("token"), "rotated").unwrap();
    scene.server.accept_tokens(&["rotated"]);
    let answers = [
        None,
        Some(Answer::conflict("node")),
        Some(Answer::Hang),
        Some(Answer::Reset),
    ];
    for (index, answer) in answers.into_iter().enumerate() {
        if let Some(answer) = answer {
            scene.server.respond_next(Verb::Patch, 1, answer);
        }
        scene.set_taints(&[FOREIGN, TAINT]);
        let removed = agent.wait_for_count("removed the taint", index + 1);
        removed.await.unwrap();
    }
    let mut asked = BTreeMap::new();
    for request in scene.server.requests() {
        let verb = format!("{:?}", request.verb).to_lowercase();
        let code = request
            .status
            .map_or("none".into(), |code| code.to_string());
        *asked.entry((verb, code)).or_insert(0) += 1;
    }
    let page = Page::of(&agent).await;
    let unanswered = ("patch".to_owned(), "none".to_owned());
    assert_eq!(asked.remove(&unanswered), Some(2));
    page.has(&[
        (
            r#"untaint_api_requests_total{verb="patch",code="timeout"}"#,
            "1",
        ),
        (
            r#"untaint_api_requests_total{verb="patch",code="error"}"#,
            "1",
        ),
        (
            r#"untaint_api_requests_total{verb="patch",code="401"}"#,
            "1",
        ),
        (
            r#"untaint_api_requests_total{verb="patch",code="409"}"#,
            "1",
        ),
    ]);
    for ((verb, code), count) in asked {
        let series = format!(r#"untaint_api_requests_total{{verb="{verb}",code="{code}"}}"#);
        page.has(&[(&series, &count.to_string())]);
    }
}

#[tokio::test]
async fn a_watch_that_is_begun_again_is_counted_by_why() {
    let scene = OnStandIn::with(&[FOREIGN], Gates::open().await).await;
    let agent = scene.agent(&LISTEN);
    agent.wait_for_message("watching the Node").await.unwrap();
    let restarts = |reason| {
        format!(r#"untaint_api_watch_restarts_total{{resource="nodes",reason="{reason}"}}"#)
    };
    let (ended, failed) = (restarts("ended"), restarts("failed"));
    Page::of(&agent).await.has(&[(&ended, "0"), (&failed, "0")]);
    scene.server.end_watches();
    agent.wait_for_count("watching the Node", 2).await.unwrap();
    Page::of(&agent).await.has(&[(&ended, "1"), (&failed, "0")]);
    scene.server.reset_connections();
    let message = "failed to watch the Node; trying again";
    agent.wait_for_message(message).await.unwrap();
    Page::of(&agent)
        .await
        .has(&[(&ended, "1"), (&failed, "1"), ("untaint_api_watching", "0")]);
}
