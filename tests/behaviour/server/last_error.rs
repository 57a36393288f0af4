//! `api.lastError`: the last failure of any request of the agent.

use testkit::agent::Agent;
use testkit::api::{Answer, Verb};

use super::LISTEN;
use crate::events::{ON, READY};
use crate::scene::{Gates, OnStandIn, TAINT};

/// Fails unless the message contains these words.
async fn is_of(agent: &Agent, words: &str) {
    let status = agent.status().await.unwrap();
    let message = &status["api"]["lastError"]["message"];
    let is_it = |message: &str| message.contains(words);
    assert!(message.as_str().is_some_and(is_it), "{words}: {status:#}");
}

#[tokio::test]
async fn an_event_and_a_watch_that_breaks_are_requests_too() {
    let scene = OnStandIn::with(&[TAINT], Gates::closed().await).await;
    scene.gates.configure(&format!("{READY}{ON}"));
    let wrong = Answer::failure(422, "Invalid", "note: Too long");
    scene.server.respond_next(Verb::Other, 1, wrong);
    let agent = scene.agent(&LISTEN);
    let message = "failed to publish an Event";
    agent.wait_for_message(message).await.unwrap();
    is_of(&agent, "note: Too long").await;

    scene.server.reset_connections();
    let message = "failed to watch the Node; trying again";
    let failed = agent.wait_for_message(message).await.unwrap();
    is_of(&agent, failed["error"].as_str().unwrap()).await;
}

#[tokio::test]
async fn so_is_the_watch_of_a_gate() {
    let scene = OnStandIn::with(&[TAINT], Gates::closed().await).await;
    scene.gates.configure(
        "- name: pods\n  taint: {key: example.com/not-ready}\n  \
         gates: [{name: pod, pods: {namespace: a, matchLabels: {b: c}}}]\n",
    );
    let refused = Answer::failure(403, "Forbidden", "pods is forbidden");
    scene.server.respond_next(Verb::Other, 1, refused);
    let agent = scene.agent(&LISTEN);
    let is_told = |line: &serde_json::Value| {
        let reason = line["reason"].as_str().unwrap_or_default();
        reason.contains("pods is forbidden")
    };
    agent.wait_for_log(is_told).await.unwrap();
    is_of(&agent, "pods is forbidden").await;
}

#[tokio::test]
async fn so_is_a_patch_of_a_node_that_is_gone() {
    let scene = OnStandIn::with(&[TAINT], Gates::closed().await).await;
    let agent = scene.agent(&LISTEN);
    agent.wait_for_message("saw the taint").await.unwrap();
    scene.server.pause_watches(true);
    scene.server.delete_node("node");
    scene.gates.open_both();
    let message = "a request failed; trying again";
    agent.wait_for_message(message).await.unwrap();
    is_of(&agent, "404: ").await;
}
