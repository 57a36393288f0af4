//! `untaint run --once`.

mod obstacles;

use std::time::Duration;

use testkit::api::{Answer, Verb};

use crate::scene::{FOREIGN, Gates, OnCluster, OnStandIn, TAINT};

#[tokio::test]
async fn it_is_done_when_a_read_past_every_cache_shows_the_taints_gone() {
    let Some(scene) = OnCluster::with("once", &[TAINT, FOREIGN], Gates::open().await).await else {
        return;
    };
    let mut agent = scene.agent(&["--once", "--settle", "100ms"]);
    assert_eq!(agent.exit_code().await.unwrap(), 0);
    assert_eq!(scene.taints().await, [FOREIGN]);
    let requests = scene.requests().await;
    let verbs: Vec<_> = requests
        .iter()
        .map(|request| request.verb.as_str())
        .collect();
    assert_eq!(verbs, ["watch", "patch", "get"]);
    assert!(
        !requests[2].uri.contains("resourceVersion"),
        "{}",
        requests[2].uri
    );
}

#[tokio::test]
async fn a_taint_that_comes_back_while_it_settles_is_removed_first() {
    let scene = OnStandIn::with(&[TAINT], Gates::open().await).await;
    let mut agent = scene.agent(&["--once", "--settle", "2s"]);
    scene.wait_for_taints(&[]).await;
    scene.set_taints(&[TAINT]);
    scene.wait_for_taints(&[]).await;
    assert_eq!(agent.exit_code().await.unwrap(), 0);
    let requests = scene.server.requests();
    assert_eq!(
        scene.verbs(),
        [Verb::Watch, Verb::Patch, Verb::Patch, Verb::Get]
    );
    assert!(requests[3].at - requests[2].at >= Duration::from_secs(2));
}

#[tokio::test]
async fn a_last_look_that_fails_is_repeated() {
    let scene = OnStandIn::with(&[], Gates::open().await).await;
    scene.server.respond_next(
        Verb::Get,
        1,
        Answer::failure(500, "InternalError", "etcd is away"),
    );
    let mut agent = scene.agent(&["--once", "--settle", "0s"]);
    assert_eq!(agent.exit_code().await.unwrap(), 0);
    assert_eq!(scene.count(Verb::Get), 2);
}

#[tokio::test]
async fn a_last_look_that_still_shows_the_taint_is_not_the_last() {
    let scene = OnStandIn::with(&[], Gates::open().await).await;
    let agent = scene.agent(&["--once", "--settle", "1s"]);
    agent.wait_for_message("saw the Node").await.unwrap();
    scene.server.pause_watches(true);
    scene.set_taints(&[TAINT]);
    scene.wait_for_taints(&[]).await;
    let mut agent = agent;
    assert_eq!(agent.exit_code().await.unwrap(), 0);
    assert_eq!(
        scene.verbs(),
        [Verb::Watch, Verb::Get, Verb::Patch, Verb::Get]
    );
}

#[tokio::test]
async fn a_last_look_under_way_does_not_count_if_the_taint_comes_back() {
    let scene = OnStandIn::with(&[], Gates::open().await).await;
    scene.server.respond_next(Verb::Get, 1, Answer::Hang);
    let mut agent = scene.agent(&["--once", "--settle", "0s"]);
    scene.wait_for(Verb::Get, 1).await;
    scene.set_taints(&[TAINT]);
    scene.wait_for_taints(&[]).await;
    assert_eq!(agent.exit_code().await.unwrap(), 0);
    assert_eq!(
        scene.verbs(),
        [Verb::Watch, Verb::Get, Verb::Patch, Verb::Get]
    );
    let requests = scene.server.requests();
    let wait = requests[3].at - requests[2].at;
    assert!(wait < Duration::from_secs(2), "{wait:?}");
}

#[tokio::test]
async fn when_time_is_up_it_says_what_is_missing_and_exits_with_3() {
    let Some(scene) = OnCluster::with("late", &[TAINT], Gates::closed().await).await else {
        return;
    };
    let mut agent = scene.agent(&["--once", "--timeout", "1s"]);
    assert_eq!(agent.exit_code().await.unwrap(), 3);
    let late = agent
        .wait_for_log(|line| {
            line["message"] == "the gate was not open in time" && line["gate"] == "agent"
        })
        .await
        .unwrap();
    assert!(late["reason"].as_str().unwrap().contains("503"), "{late}");
    assert_eq!(scene.taints().await, [TAINT]);
}

/// A rule for this taint on the Nodes of a pool that the Node is not in.
const OF_ANOTHER_POOL: &str = "- {name: other-pool, taint: {key: example.com/not-ready}, nodeSelector: {pool: b}, gates: []}\n";

#[tokio::test]
async fn a_taint_that_no_rule_for_this_node_removes_has_an_exit_code_of_its_own() {
    let of_this_pool = OF_ANOTHER_POOL
        .replace("other-pool", "pool")
        .replace("pool: b", "pool: a");
    let both = format!("{OF_ANOTHER_POOL}{of_this_pool}");
    for (name, taints, rules, expected) in [
        ("left", &[TAINT, FOREIGN], OF_ANOTHER_POOL, 4),
        (
            "left-none",
            &[FOREIGN, "example.com/x:NoExecute"],
            OF_ANOTHER_POOL,
            0,
        ),
        ("left-to-another-rule", &[TAINT, FOREIGN], &both, 0),
    ] {
        let gates = Gates::open().await;
        gates.configure(rules);
        let Some(scene) = OnCluster::with(name, taints, gates).await else {
            return;
        };
        let labels = serde_json::json!({"metadata": {"labels": {"pool": "a"}}});
        scene.cluster.patch_node(name, &labels).await.unwrap();
        let mut agent = scene.agent(&["--once", "--settle", "100ms"]);
        assert_eq!(agent.exit_code().await.unwrap(), expected, "{name}");
        if expected == 4 {
            let line = agent.wait_for_message("the taint stays").await.unwrap();
            let found = (&line["level"], &line["rule"], &line["taint"]);
            assert_eq!(
                found,
                (&"ERROR".into(), &"other-pool".into(), &TAINT.into())
            );
            assert_eq!(scene.taints().await, [TAINT, FOREIGN]);
        }
    }
}
