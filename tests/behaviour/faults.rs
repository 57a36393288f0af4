//! Faults between the agent and the API server.

use std::time::Duration;

use testkit::api::{Answer, Verb};
use testkit::kubeconfig::point_at;
use testkit::proxy::{FaultProxy, Mode};
use testkit::taints;

use crate::scene::{FOREIGN, Gates, OnCluster, OnStandIn, TAINT};

#[tokio::test]
async fn an_api_server_that_is_unreachable_at_start_is_reached_once_it_is_back_and_gates_run_meanwhile()
 {
    let Some(scene) = OnCluster::with("unreachable", &[TAINT], Gates::closed().await).await else {
        return;
    };
    let proxy = FaultProxy::start(scene.cluster.address()).await.unwrap();
    point_at(&scene.kubeconfig, proxy.address()).unwrap();
    for mode in [Mode::Refuse, Mode::BlackHole] {
        proxy.set(mode);
        let mut agent = scene.agent(&[]);
        agent
            .wait_for_message("failed to watch the Node; trying again")
            .await
            .unwrap();
        scene.gates.open_both();
        agent
            .wait_for_log(|line| line["gate"] == "agent" && line["state"] == "open")
            .await
            .unwrap();
        assert!(!agent.has_ended().unwrap());
        proxy.set(Mode::Pass);
        scene.wait_for_taints(&[]).await;
        scene.set_taints(&[TAINT]).await;
        scene.wait_for_taints(&[]).await;
        drop(agent);
        scene.set_taints(&[TAINT]).await;
        scene.gates.health.set(503);
    }
}

#[tokio::test]
async fn gates_that_open_while_the_api_server_is_away_make_it_connect_at_once() {
    let scene = OnStandIn::with(&[TAINT], Gates::closed().await).await;
    let proxy = FaultProxy::start(scene.server.address()).await.unwrap();
    point_at(&scene.kubeconfig, proxy.address()).unwrap();
    proxy.set(Mode::Refuse);
    let agent = scene.agent(&[]);
    // By the fifth try the waits are up to 8 s long.
    proxy.wait_for_connections(5).await.unwrap();
    proxy.set(Mode::Pass);
    let opened = std::time::Instant::now();
    scene.gates.open_both();
    scene.wait_for_taints(&[]).await;
    agent.wait_for_message("removed the taint").await.unwrap();
    assert!(
        opened.elapsed() < Duration::from_secs(3),
        "{:?}",
        opened.elapsed()
    );
}

#[tokio::test]
async fn after_each_conflict_or_failed_test_the_node_is_read_and_the_patch_is_computed_again() {
    let answers = [
        Answer::conflict("node"),
        Answer::failure(422, "Invalid", "the server rejected our request"),
    ];
    for answer in answers {
        let scene = OnStandIn::with(&[TAINT, FOREIGN], Gates::open().await).await;
        scene.server.respond_next(Verb::Patch, 8, answer);
        let _agent = scene.agent(&[]);
        scene.wait_for_taints(&[FOREIGN]).await;
        let verbs = scene.verbs();
        assert_eq!(verbs[0], Verb::Watch);
        assert!(verbs[1..].chunks(2).all(
            |pair| pair[0] == Verb::Patch && pair.get(1).is_none_or(|verb| *verb == Verb::Get)
        ));
        assert_eq!(scene.count(Verb::Patch), 9);
        let patches = scene.all(Verb::Patch);
        let longest = patches
            .windows(2)
            .map(|pair| pair[1].at - pair[0].at)
            .max()
            .unwrap();
        assert!(longest < Duration::from_secs(6), "{longest:?}");
    }
}

#[tokio::test]
async fn another_writer_between_read_and_patch_makes_the_second_attempt_succeed() {
    let scene = OnStandIn::with(&[TAINT], Gates::closed().await).await;
    let agent = scene.agent(&[]);
    agent.wait_for_message("saw the taint").await.unwrap();
    scene.server.pause_watches(true);
    scene.set_taints(&[FOREIGN, TAINT]);
    scene.gates.open_both();
    scene.wait_for_taints(&[FOREIGN]).await;
    assert_eq!(
        scene.verbs(),
        [Verb::Watch, Verb::Patch, Verb::Get, Verb::Patch]
    );
}

#[tokio::test]
async fn a_patch_without_an_answer_has_the_node_read_on_a_new_connection_before_anything_is_sent_again()
 {
    let cases = [
        (Answer::Hang, vec![Verb::Patch, Verb::Get, Verb::Patch]),
        (Answer::Reset, vec![Verb::Patch, Verb::Get, Verb::Patch]),
        (Answer::ApplyAndHang, vec![Verb::Patch, Verb::Get]),
        (Answer::ApplyAndReset, vec![Verb::Patch, Verb::Get]),
    ];
    for (answer, expected) in cases {
        let scene = OnStandIn::with(&[FOREIGN, TAINT], Gates::open().await).await;
        scene.server.respond_next(Verb::Patch, 1, answer.clone());
        let mut agent = scene.agent(&["--once", "--settle", "0s"]);
        assert_eq!(agent.exit_code().await.unwrap(), 0);
        let sent: Vec<_> = scene
            .server
            .requests()
            .into_iter()
            .filter(|request| request.verb != Verb::Watch)
            .collect();
        let verbs: Vec<_> = sent.iter().map(|request| request.verb).collect();
        assert!(verbs.starts_with(&expected), "{answer:?}: {verbs:?}");
        assert_ne!(
            sent[0].connection, sent[1].connection,
            "{answer:?}: the connection is not used again"
        );
        assert_eq!(
            taints(&scene.server.node("node").unwrap()),
            [FOREIGN],
            "{answer:?}"
        );
    }
}

#[tokio::test]
async fn a_patch_without_an_answer_has_the_node_read_also_when_nothing_is_wanted_any_more() {
    let scene = OnStandIn::with(&[FOREIGN, TAINT], Gates::open().await).await;
    scene.server.respond_next(Verb::Patch, 1, Answer::Hang);
    let agent = scene.agent(&[]);
    scene.wait_for(Verb::Patch, 1).await;
    scene.gates.health.set(503);
    agent
        .wait_for_log(|line| line["gate"] == "agent" && line["state"] == "closed")
        .await
        .unwrap();
    // The agent can see this only by a read.
    scene.server.pause_watches(true);
    let newer = scene.server.update_node("node", |node| {
        node["metadata"]["labels"] = serde_json::json!({"a": "b"});
    });
    let version = newer["metadata"]["resourceVersion"].as_str().unwrap();
    let version: u64 = version.parse().unwrap();
    let is_newer = |line: &serde_json::Value| line["resource_version"] == version;
    agent.wait_for_log(is_newer).await.unwrap();
    scene.server.pause_watches(false);
    scene.set_taints(&[FOREIGN]);
    let by_other = "another program removed the taint before the rule was ready";
    agent.wait_for_message(by_other).await.unwrap();
    assert_eq!(scene.verbs(), [Verb::Watch, Verb::Patch, Verb::Get]);
}

#[tokio::test]
async fn a_server_that_asks_to_be_left_alone_is_and_retries_are_not_stacked() {
    let scene = OnStandIn::with(&[TAINT], Gates::open().await).await;
    scene
        .server
        .respond_next(Verb::Patch, 2, Answer::too_many_requests(1));
    scene.server.respond_next(
        Verb::Patch,
        1,
        Answer::failure(503, "ServiceUnavailable", "try later"),
    );
    let _agent = scene.agent(&[]);
    scene.wait_for_taints(&[]).await;
    assert_eq!(
        scene.verbs(),
        [
            Verb::Watch,
            Verb::Patch,
            Verb::Patch,
            Verb::Patch,
            Verb::Get,
            Verb::Patch
        ],
        "one request a try, and a 429 is no reason to read"
    );
    let patches = scene.all(Verb::Patch);
    assert!(
        patches[..3]
            .windows(2)
            .all(|pair| pair[1].at - pair[0].at >= Duration::from_secs(1))
    );
}

#[tokio::test]
async fn a_watch_refused_with_retry_after_is_not_tried_before() {
    let scene = OnStandIn::with(&[TAINT], Gates::open().await).await;
    scene
        .server
        .respond_next(Verb::Watch, 1, Answer::too_many_requests(2));
    let _agent = scene.agent(&[]);
    scene.wait_for_taints(&[]).await;
    let watches = scene.all(Verb::Watch);
    assert!(watches[1].at - watches[0].at >= Duration::from_secs(2));
}

#[tokio::test]
async fn a_connection_that_falls_silent_is_noticed_by_its_pings() {
    let Some(scene) = OnCluster::with("half-open", &[FOREIGN], Gates::open().await).await else {
        return;
    };
    let proxy = FaultProxy::start(scene.cluster.address()).await.unwrap();
    point_at(&scene.kubeconfig, proxy.address()).unwrap();
    let mut agent = scene.agent(&[]);
    agent.wait_for_message("watching the Node").await.unwrap();
    proxy.set(Mode::BlackHole);
    scene.set_taints(&[FOREIGN, TAINT]).await;
    let is_noticed = async {
        while agent.count("failed to watch the Node; trying again") == 0 {
            agent.next_log().await.unwrap();
        }
    };
    tokio::time::timeout(Duration::from_secs(30), is_noticed)
        .await
        .unwrap();
    proxy.set(Mode::Pass);
    scene.wait_for_taints(&[FOREIGN]).await;
}

#[tokio::test]
async fn a_proxy_in_the_environment_is_not_used() {
    let scene = OnStandIn::with(&[TAINT], Gates::open().await).await;
    let proxies =
        ["HTTPS_PROXY", "HTTP_PROXY", "ALL_PROXY"].map(|name| (name, "http://127.0.0.1:1"));
    let _agent = scene
        .gates
        .agent_with("node", &scene.kubeconfig, &[], &proxies);
    scene.wait_for_taints(&[]).await;
}
