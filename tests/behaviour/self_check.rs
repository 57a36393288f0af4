//! The self-check with answers that a real server does not give. `tests/hostile` tests the other answers.

use serde_json::Value;
use testkit::agent::Agent;
use testkit::api::{Answer, Request, Verb};

use crate::scene::{FOREIGN, Gates, OnStandIn, TAINT};

const CHECK: [(&str, &str); 1] = [("UNTAINT_NO_POLICY_CHECK", "false")];
const LISTEN: [&str; 2] = ["--listen", "127.0.0.1:0"];

fn agent(scene: &OnStandIn, more: &[&str]) -> Agent {
    let more = [&LISTEN, more].concat();
    scene
        .gates
        .agent_with("node", &scene.kubeconfig, &more, &CHECK)
}

async fn state(agent: &Agent) -> Value {
    agent.status().await.unwrap()["policy"]["state"].clone()
}

fn is_dry_run(request: &Request) -> bool {
    request.uri.contains("dryRun=All")
}

#[tokio::test]
async fn a_question_without_an_answer_holds_up_neither_a_removal_nor_its_connection() {
    let scene = OnStandIn::with(&[TAINT, FOREIGN], Gates::closed().await).await;
    scene.server.respond_next(Verb::Patch, 1, Answer::Hang);
    let agent = agent(&scene, &[]);
    scene.wait_for(Verb::Patch, 1).await;
    scene.gates.open_both();
    scene.wait_for_taints(&[FOREIGN]).await;
    let requests = scene.server.requests();
    let first: Vec<_> = requests.iter().take(3).collect();
    assert!(
        is_dry_run(first[1]) && !is_dry_run(first[2]),
        "{requests:#?}"
    );
    assert_eq!(first[0].connection, first[1].connection);
    assert_eq!(first[1].connection, first[2].connection);
    // The self-check is repeated, and its failure is not one of the main job.
    let again = |all: &[Request]| all.iter().filter(|it| is_dry_run(it)).count() == 2;
    let requests = scene.server.wait_for_requests(again).await.unwrap();
    assert!(
        requests
            .iter()
            .all(|it| it.connection == first[0].connection)
    );
    let status = agent.status().await.unwrap();
    assert_eq!(status["api"].get("lastError"), None, "{status:#}");
}

#[tokio::test]
async fn who_does_not_want_to_know_or_writes_nothing_does_not_ask() {
    let dry_run = ["--dry-run"];
    let opted_out = ["--no-policy-check"];
    for more in [&dry_run, &opted_out] {
        let scene = OnStandIn::with(&[FOREIGN], Gates::open().await).await;
        let agent = agent(&scene, more);
        agent.wait_for_message("watching the Node").await.unwrap();
        assert_eq!(state(&agent).await, "unchecked");
        // If the agent sent a self-check, it would have sent it before it sees this.
        scene.set_taints(&[]);
        agent.wait_for_count("saw the Node", 2).await.unwrap();
        assert_eq!(scene.verbs(), [Verb::Watch]);
    }
    let scene = OnStandIn::with(&[TAINT], Gates::open().await).await;
    scene.gates.configure(&scene.gates.rule("  dryRun: true\n"));
    let agent = agent(&scene, &[]);
    let would = "would remove the taint (dry run)";
    agent.wait_for_message(would).await.unwrap();
    assert_eq!(state(&agent).await, "unchecked");
    assert_eq!(scene.verbs(), [Verb::Watch]);
}

#[tokio::test]
async fn a_removal_that_is_due_goes_first() {
    let scene = OnStandIn::with(&[TAINT], Gates::closed().await).await;
    scene
        .gates
        .configure("- {name: a, taint: {key: example.com/not-ready}, gates: []}\n");
    let agent = agent(&scene, &[]);
    scene.wait_for(Verb::Patch, 2).await;
    agent.wait_for_message("removed the taint").await.unwrap();
    let asked: Vec<_> = scene.server.requests().iter().map(is_dry_run).collect();
    assert_eq!(asked, [false, false, true], "watch, removal, question");
}

#[tokio::test]
async fn what_a_server_that_ignores_dry_runs_has_done_is_undone_at_once_and_not_done_again() {
    for more in [&[][..], &["--once", "--settle", "500ms"]] {
        let scene = OnStandIn::with(&[FOREIGN], Gates::open().await).await;
        scene.server.ignore_dry_runs();
        let mut agent = agent(&scene, more);
        agent
            .wait_for_log(|line| {
                let message = line["message"].as_str().unwrap_or_default();
                line["level"] == "ERROR" && message.starts_with("the server carried out a dry run")
            })
            .await
            .unwrap();
        scene.wait_for(Verb::Patch, 2).await;
        scene.wait_for_taints(&[FOREIGN]).await;
        if more.is_empty() {
            assert_eq!(state(&agent).await, "unknown");
        } else {
            assert_eq!(agent.exit_code().await.unwrap(), 0);
        }
        let patches = scene.all(Verb::Patch);
        let asked: Vec<_> = patches.iter().map(is_dry_run).collect();
        assert_eq!(asked, [true, false]);
    }
}
