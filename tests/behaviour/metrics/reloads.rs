//! The page after a change of the configuration.

use jiff::Timestamp;
use testkit::agent::Agent;
use testkit::api::{Answer, Verb};

use super::{LISTEN, Page};
use crate::scene::{Gates, OnCluster, OnStandIn, TAINT};
use testkit::config_map::ConfigMap;

const OTHER: &str = "- {name: other, taint: {key: example.com/other}, gates: []}\n";
const SUCCESSES: &str = r#"untaint_config_reloads_total{result="success"}"#;
const FAILURES: &str = r#"untaint_config_reloads_total{result="failure"}"#;
const GOOD: &str = "untaint_config_last_reload_successful";
const LOADED: &str = "untaint_config_last_reload_success_timestamp_seconds";

/// The time when the active configuration was loaded, from `/statusz`.
async fn loaded(agent: &Agent) -> String {
    let status = agent.status().await.unwrap();
    let loaded = status["configuration"]["loaded"].as_str().unwrap();
    loaded.parse::<Timestamp>().unwrap().as_second().to_string()
}

#[tokio::test]
async fn reloads_are_counted_by_their_result_and_a_rule_that_goes_takes_its_series_along() {
    let Some(scene) = OnCluster::with("counted-reload", &[TAINT], Gates::closed().await).await
    else {
        return;
    };
    let rule = scene.gates.rule("");
    let mut map = ConfigMap::mount(scene.gates.dir.path(), &rule);
    let agent = scene.agent(&LISTEN);
    agent.wait_for_message("saw the taint").await.unwrap();
    let counts = [(SUCCESSES, "0"), (FAILURES, "0"), (GOOD, "1")];
    let first = Page::of(&agent).await;
    first.has(&counts);
    first.has(&[(LOADED, &loaded(&agent).await)]);

    map.swap_files(Some("nonsense"));
    let message = "the configuration file is invalid; continuing with the active configuration";
    agent.wait_for_message(message).await.unwrap();
    let bad = Page::of(&agent).await;
    bad.has(&[(SUCCESSES, "0"), (FAILURES, "1"), (GOOD, "0")]);
    assert_eq!(bad.series[LOADED], first.series[LOADED]);
    assert!(bad.series.keys().eq(first.series.keys()), "{}", bad.text);

    map.swap(&format!("{OTHER}{rule}"));
    let message = "reloaded the configuration";
    agent.wait_for_message(message).await.unwrap();
    let both = Page::of(&agent).await;
    both.has(&[(SUCCESSES, "1"), (FAILURES, "1"), (GOOD, "1")]);
    both.has(&[(LOADED, &loaded(&agent).await)]);
    both.has(&[(r#"untaint_rule_removals_total{rule="other"}"#, "0")]);

    map.swap(OTHER);
    agent.wait_for_count(message, 2).await.unwrap();
    let other = Page::of(&agent).await;
    other.has(&[(SUCCESSES, "2")]);
    assert!(!other.text.contains(r#"rule="cni""#), "{}", other.text);
}

#[tokio::test]
async fn another_rule_of_the_same_name_is_counted_from_0_and_another_version_of_a_rule_is_not() {
    let scene = OnStandIn::with(&[TAINT], Gates::closed().await).await;
    let rule = OTHER.replace("example.com/other", "example.com/not-ready");
    let mut map = ConfigMap::mount(scene.gates.dir.path(), &rule);
    let agent = scene.agent(&LISTEN);
    agent.wait_for_message("removed the taint").await.unwrap();
    let removals = r#"untaint_rule_removals_total{rule="other"}"#;
    for (index, (rule, counted)) in [
        (rule.replace("gates", "stableFor: 1ms, gates"), "1"),
        (OTHER.to_owned(), "0"),
    ]
    .into_iter()
    .enumerate()
    {
        map.swap(&rule);
        let reloaded = agent.wait_for_count("reloaded the configuration", index + 1);
        reloaded.await.unwrap();
        Page::of(&agent).await.has(&[(removals, counted)]);
    }
}

#[tokio::test]
async fn a_request_that_is_broken_off_is_counted_too() {
    let scene = OnStandIn::with(&[TAINT], Gates::open().await).await;
    let mut map = ConfigMap::mount(scene.gates.dir.path(), &scene.gates.rule(""));
    scene.server.respond_next(Verb::Patch, 1, Answer::Hang);
    let agent = scene.agent(&LISTEN);
    scene.wait_for(Verb::Patch, 1).await;
    map.swap(OTHER);
    let message = "canceled a change that no rule wants any more";
    agent.wait_for_message(message).await.unwrap();
    let series = r#"untaint_api_requests_total{verb="patch",code="error"}"#;
    Page::of(&agent).await.has(&[(series, "1")]);
}
