//! Answers that are no denial, but last.

use std::time::Duration;

use serde_json::Value;
use testkit::api::{Answer, Verb};

use super::REFUSED;
use crate::scene::{FOREIGN, Gates, OnStandIn, TAINT};

const LASTING: &str = "the removal fails again and again";

#[tokio::test]
async fn an_answer_that_lasts_is_told_with_its_message_and_tried_again_until_it_ends() {
    let cases = [
        (
            "conflict",
            Answer::conflict("node"),
            "409: Operation cannot be fulfilled on nodes",
        ),
        (
            "failed test",
            Answer::failure(422, "Invalid", "rejected"),
            "422: rejected",
        ),
        (
            "server error",
            Answer::failure(500, "InternalError", "failed calling webhook \"w\": no"),
            "failed calling webhook \"w\": no",
        ),
        (
            "busy",
            Answer::failure(429, "TooManyRequests", ""),
            "429: TooManyRequests",
        ),
        (
            "unavailable",
            Answer::page(
                503,
                &[("content-type", "text/html")],
                "<html><head><title>No server</title></head><body>x</body></html>",
            ),
            "503: No server",
        ),
        (
            "empty",
            Answer::page(509, &[], ""),
            "509: the answer has no text",
        ),
        (
            "not found",
            Answer::not_found("node"),
            "404: nodes \"node\" not found",
        ),
    ];
    let runs = cases.map(|(name, answer, expected)| async move {
        let scene = OnStandIn::with(&[TAINT, FOREIGN], Gates::open().await).await;
        scene.server.respond_next(Verb::Patch, 1000, answer);
        let agent = scene.agent(&["--listen", "127.0.0.1:0"]);
        let told = agent.wait_for_message(LASTING).await.unwrap();
        let contains = |text: &Value| text.as_str().is_some_and(|text| text.contains(expected));
        assert!(contains(&told["error"]), "{name}: {told}");
        let status = agent.status().await.unwrap();
        assert!(
            contains(&status["rules"][0]["denied"]),
            "{name}: {status:#}"
        );
        assert_eq!(
            (agent.count(LASTING), agent.count(REFUSED)),
            (1, 0),
            "{name}"
        );
        let tries = scene.count(Verb::Patch);
        assert!((3..=20).contains(&tries), "{name}: {tries}");
        scene.server.respond_as_usual();
        scene.wait_for_taints(&[FOREIGN]).await;
        agent.wait_for_message("removed the taint").await.unwrap();
        let status = agent.status().await.unwrap();
        assert_eq!(status["rules"][0]["denied"], Value::Null, "{name}");
    });
    futures_util::future::join_all(runs).await;
}

#[tokio::test]
async fn a_taint_that_moves_after_each_refusal_is_denied_all_the_same() {
    let scene = OnStandIn::with(&[TAINT], Gates::open().await).await;
    let message = "the taint must stay";
    let answer = Answer::denied(403, "Forbidden", "node", message);
    scene.server.respond_next(Verb::Patch, 1000, answer);
    let agent = scene.agent(&[]);
    let others = [&[FOREIGN, TAINT][..], &[TAINT, FOREIGN], &[TAINT]];
    for (count, taints) in (1..=3).zip(others) {
        scene.wait_for(Verb::Patch, count).await;
        scene.set_taints(taints);
    }
    let refused = agent.wait_for_message(REFUSED).await.unwrap();
    assert!(
        refused["error"].as_str().unwrap().contains(message),
        "{refused}"
    );
    let patches = scene.all(Verb::Patch);
    let wait = patches[1].at - patches[0].at;
    assert!(wait >= Duration::from_secs(1), "{wait:?}");
    assert_eq!(agent.count(REFUSED), 1);
}

#[tokio::test]
async fn a_node_that_is_said_not_to_exist_while_the_watch_shows_it_is_asked_for_again() {
    for verb in [Verb::Patch, Verb::Get] {
        let scene = OnStandIn::with(&[TAINT, FOREIGN], Gates::open().await).await;
        let conflict = Answer::conflict("node");
        if verb == Verb::Get {
            scene.server.respond_next(Verb::Patch, 1, conflict);
        }
        scene
            .server
            .respond_next(verb, 1, Answer::not_found("node"));
        let agent = scene.agent(&[]);
        scene.wait_for_taints(&[FOREIGN]).await;
        let is_told = |line: &Value| {
            let error = line["error"].as_str().unwrap_or_default();
            line["level"] == "WARN" && error.starts_with("404: nodes \"node\" not found")
        };
        agent.wait_for_log(is_told).await.unwrap();
        let waits: Vec<_> = scene
            .server
            .requests()
            .windows(2)
            .map(|pair| pair[1].at - pair[0].at)
            .collect();
        assert!(
            waits[1..].iter().all(|wait| *wait < Duration::from_secs(2)),
            "{waits:?}"
        );
    }
}
