//! Events that cannot be written, and hostile texts in Events.

use std::time::{Duration, Instant};

use http::HeaderMap;
use serde_json::{Value, json};
use testkit::api::{Answer, Reply, Verb};
use testkit::cluster;

use super::{EVENTS, ON, READY, grant, scene, wait_for_event};
use crate::scene::{Gates, OnStandIn, TAINT};

const FAILED: &str = "failed to publish an Event";

/// A stand-in, which does not know Events. It gives these answers to the first requests for Events, and then accepts
/// them.
async fn stand_in(taints: &[&str], rules: &str, answers: &[Answer]) -> OnStandIn {
    let scene = OnStandIn::with(taints, Gates::closed().await).await;
    scene.gates.configure(&format!("{rules}{ON}"));
    for answer in answers {
        scene.server.respond_next(Verb::Other, 1, answer.clone());
    }
    let taken = Reply {
        status: 201,
        headers: HeaderMap::new(),
        body: json!({"metadata": {}}),
    };
    let taken = Answer::Reply(taken);
    scene.server.respond_next(Verb::Other, usize::MAX, taken);
    scene
}

/// The Events that were sent, with the status code of the answer.
fn events(scene: &OnStandIn) -> Vec<(Option<u16>, Value)> {
    let all = scene.all(Verb::Other);
    assert!(all.iter().all(|request| request.uri.starts_with(EVENTS)));
    all.iter()
        .map(|request| (request.status, serde_json::from_str(&request.body).unwrap()))
        .collect()
}

fn status(scene: &OnStandIn) -> Vec<Option<u16>> {
    events(scene)
        .into_iter()
        .map(|(status, _)| status)
        .collect()
}

#[tokio::test]
async fn without_the_permission_taints_go_all_the_same_and_one_line_says_what_is_missing() {
    let Some(cluster) = cluster::fresh(&[]).await else {
        return;
    };
    let gates = Gates::closed().await;
    gates.configure(&format!("{READY}{ON}"));
    let kubeconfig = gates.tainted_node(&cluster, "node", &[TAINT]).await;
    let agent = gates.agent("node", &kubeconfig, &[]);
    agent.wait_for_message("removed the taint").await.unwrap();
    // The Event is tried again, but not logged again.
    agent.wait_for_count(FAILED, 3).await.unwrap();
    let lines = agent.logs();
    let failures = lines.iter().filter(|line| line["message"] == FAILED);
    let loud: Vec<_> = failures.filter(|line| line["level"] == "WARN").collect();
    let [failure] = loud.as_slice() else {
        panic!("{loud:?}");
    };
    let missing = r#"cannot create resource "events" in API group "events.k8s.io" in the namespace "default""#;
    let error = failure["error"].as_str().unwrap();
    assert!(error.contains(missing), "{error}");

    grant(&cluster).await;
    wait_for_event(&cluster, "node", "TaintRemoved", 1).await;
    let over = agent
        .wait_for_message("Events can be published again")
        .await;
    assert_eq!(over.unwrap()["given_up"], 0);
    cluster.set_taints("node", &[TAINT]).await.unwrap();
    wait_for_event(&cluster, "node", "TaintRemoved", 2).await;
}

/// The texts of gates come from other programs.
#[tokio::test]
async fn hostile_reasons_are_cut_and_clean() {
    let gate = |name: u32| {
        let text = r"\\033[31m\\r\\342\\200\\256\\360\\237\\230\\200\\001";
        let print = format!("printf '%b' '{}'; exit 1", text.repeat(20));
        format!("  - {{name: g{name}, exec: {{command: [/bin/sh, -c, \"{print}\"]}}}}\n")
    };
    let gates: String = (0..8).map(gate).collect();
    let rule = format!(
        "- name: hostile\n  taint: {{key: example.com/not-ready}}\n  \
         deadline: {{after: 5s}}\n  gates:\n{gates}"
    );
    let Some(scene) = scene("events-hostile", &[TAINT], &rule).await else {
        return;
    };
    let _agent = scene.agent(&[]);
    let event = wait_for_event(scene.cluster, scene.name, "DeadlineExceeded", 1).await;
    let note = event["note"].as_str().unwrap();
    assert!((1000..=1024).contains(&note.len()), "{note:?}");
    assert!(note.contains('😀') && note.ends_with('…'), "{note:?}");
    let visible = |c: char| !c.is_control() && c != '\u{202e}';
    assert!(note.chars().all(visible), "{note:?}");
}

#[tokio::test]
async fn an_event_without_an_answer_holds_up_neither_removals_nor_their_connection() {
    let scene = stand_in(&[TAINT], READY, &[Answer::Hang]).await;
    let _agent = scene.agent(&[]);
    scene.wait_for_taints(&[]).await;
    scene.wait_for(Verb::Other, 1).await;
    scene.set_taints(&[TAINT]);
    scene.wait_for_taints(&[]).await;
    assert_eq!(status(&scene), [None], "one request at a time");
    // First the first Event again, and then the second.
    scene.wait_for(Verb::Other, 3).await;
    scene.set_taints(&[TAINT]);
    scene.wait_for_taints(&[]).await;
    let patches = scene.all(Verb::Patch);
    assert_eq!(patches.len(), 3);
    let connections = scene.server.requests();
    assert!(connections.iter().all(|request| request.connection == 0));
}

#[tokio::test]
async fn an_event_that_is_refused_for_a_token_that_stays_the_same_is_reported_and_sent_again() {
    let refused = Answer::failure(401, "Unauthorized", "Unauthorized");
    let scene = stand_in(&[TAINT], READY, &[refused]).await;
    let agent = scene.agent(&[]);
    let failed = agent.wait_for_message(FAILED).await.unwrap();
    assert!(failed["error"].as_str().unwrap().contains("401"));
    let again = agent
        .wait_for_message("Events can be published again")
        .await;
    assert_eq!(again.unwrap()["given_up"], 0);
    assert_eq!(status(&scene), [Some(401), Some(201)]);
}

#[tokio::test]
async fn an_event_that_the_server_finds_wrong_is_not_sent_again() {
    let wrong = Answer::failure(422, "Invalid", "note: Too long");
    let scene = stand_in(&[TAINT], READY, &[wrong]).await;
    let agent = scene.agent(&[]);
    let failed = agent.wait_for_message(FAILED).await.unwrap();
    assert!(failed["error"].as_str().unwrap().contains("Too long"));
    scene.set_taints(&[TAINT]);
    let again = agent
        .wait_for_message("Events can be published again")
        .await;
    assert_eq!(again.unwrap()["given_up"], 1);
    assert_eq!(status(&scene), [Some(422), Some(201)]);
}

#[tokio::test]
async fn a_dry_run_writes_no_events() {
    let rule = |name: &str, after: &str, dry_run: bool| {
        format!(
            "- name: {name}\n  taint: {{key: {name}}}\n  dryRun: {dry_run}\n  \
             deadline: {{after: {after}}}\n  gates: [{{name: file, file: {{path: /nonexistent}}}}]\n"
        )
    };
    let rules = rule("dry", "1s", true) + &rule("real", "2s", false);
    let scene = stand_in(&["dry:NoSchedule", "real:NoSchedule"], &rules, &[]).await;
    let _agent = scene.agent(&[]);
    // Events are sent in order.
    scene.wait_for(Verb::Other, 2).await;
    for (_, event) in events(&scene) {
        assert!(
            event["note"].as_str().unwrap().contains("rule real"),
            "{event}"
        );
    }
}

#[tokio::test]
async fn a_dry_run_of_the_command_line_writes_no_event_of_a_bad_file_either() {
    let scene = stand_in(&[TAINT], READY, &[]).await;
    let agent = scene.agent(&["--dry-run"]);
    let would = "would remove the taint (dry run)";
    agent.wait_for_message(would).await.unwrap();
    scene.gates.configure(&format!("- {{name: bad}}\n{ON}"));
    let bad = "the configuration file is invalid; continuing with the active configuration";
    agent.wait_for_message(bad).await.unwrap();
    // An Event for that file would be sent before the agent reads this one.
    let another = READY.replace("name: ready", "name: another");
    scene.gates.configure(&format!("{another}{ON}"));
    agent.wait_for_count(would, 2).await.unwrap();
    assert_eq!(status(&scene), []);
}

#[tokio::test]
async fn run_once_waits_for_its_last_events() {
    let taints: Vec<_> = (0..20).map(|n| format!("t{n}:NoSchedule")).collect();
    let taints: Vec<_> = taints.iter().map(String::as_str).collect();
    let rule = |n: u32| format!("- {{name: r{n}, taint: {{key: t{n}}}, gates: []}}\n");
    let rules: String = (0..20).map(rule).collect();
    let scene = stand_in(&taints, &rules, &[]).await;
    let mut agent = scene.agent(&["--once", "--settle", "0s"]);
    assert_eq!(agent.exit_code().await.unwrap(), 0);
    assert_eq!(status(&scene), [Some(201); 20]);
}

#[tokio::test]
async fn run_once_does_not_wait_for_long_and_does_not_fail_for_an_event() {
    let scene = stand_in(&[TAINT], READY, &[Answer::Hang]).await;
    let started = Instant::now();
    // The time-out ends while the command waits for its Event.
    let mut agent = scene.agent(&["--once", "--settle", "0s", "--timeout", "1s"]);
    assert_eq!(agent.exit_code().await.unwrap(), 0);
    assert!(started.elapsed() < Duration::from_secs(4));
    assert_eq!(status(&scene), [None]);
}

#[tokio::test]
async fn sigterm_does_not_wait_for_an_event() {
    let scene = stand_in(&[TAINT], READY, &[Answer::Hang]).await;
    let mut agent = scene.agent(&[]);
    scene.wait_for(Verb::Other, 1).await;
    agent.signal("TERM").await.unwrap();
    let status = agent.ended(Duration::from_secs(1)).await.unwrap();
    assert_eq!(status.code(), Some(0));
}

#[tokio::test]
async fn a_server_that_asks_to_be_left_alone_gets_no_event_before_it_is_time() {
    let busy = Answer::too_many_requests(2);
    let scene = stand_in(&[TAINT], READY, &[busy]).await;
    let _agent = scene.agent(&[]);
    scene.wait_for(Verb::Other, 2).await;
    let sent = scene.all(Verb::Other);
    assert!(sent[1].at - sent[0].at >= Duration::from_secs(2));
}
