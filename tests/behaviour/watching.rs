//! The watch of the own Node.

use std::time::Duration;

use serde_json::json;
use testkit::api::{Options, Request, Verb};
use testkit::cluster;

use crate::scene::{FOREIGN, Gates, OnCluster, OnStandIn, TAINT};

#[tokio::test]
async fn an_older_node_that_arrives_after_the_answer_to_a_patch_is_dropped() {
    let scene = OnStandIn::with(&[TAINT], Gates::closed().await).await;
    let agent = scene.agent(&[]);
    agent.wait_for_message("saw the taint").await.unwrap();
    scene.server.pause_watches(true);
    scene.server.update_node("node", |node| {
        node["metadata"]["labels"] = json!({"a": "b"});
    });
    scene.gates.open_both();
    agent.wait_for_message("removed the taint").await.unwrap();
    scene.server.pause_watches(false);
    agent
        .wait_for_message("dropped a Node older than the one known")
        .await
        .unwrap();
    // If the agent acted on the old Node, it would do so before it acts on a newer one.
    scene.set_taints(&[FOREIGN, TAINT]);
    scene.wait_for_taints(&[FOREIGN]).await;
    agent
        .wait_for_log(|line| line["message"] == "removed the taint")
        .await
        .unwrap();
    assert_eq!(scene.verbs(), [Verb::Watch, Verb::Patch, Verb::Patch]);
    assert_eq!(agent.count("saw the taint"), 2);
}

#[tokio::test]
async fn a_watch_that_ends_in_good_order_is_followed_by_another_and_never_in_a_hurry() {
    let scene = OnStandIn::with(&[FOREIGN], Gates::open().await).await;
    let agent = scene.agent(&[]);
    for count in 1..=3 {
        agent
            .wait_for_count("watching the Node", count)
            .await
            .unwrap();
        scene.server.end_watches();
    }
    scene.wait_for(Verb::Watch, 4).await;
    let watches = scene.all(Verb::Watch);
    let asks_for_state = |watch: &Request| watch.uri.contains("sendInitialEvents");
    assert!(
        watches.iter().all(asks_for_state),
        "whatever version it had may be of a lost future"
    );
    let gaps: Vec<_> = watches
        .windows(2)
        .map(|pair| pair[1].at - pair[0].at)
        .collect();
    assert!(
        gaps.iter().all(|gap| *gap >= Duration::from_millis(250)),
        "clean ends are waited after: {gaps:?}"
    );
    assert!(gaps[2] > gaps[0], "ever longer: {gaps:?}");

    scene.set_taints(&[FOREIGN, TAINT]);
    scene.wait_for_taints(&[FOREIGN]).await;
}

#[tokio::test]
async fn a_watch_that_breaks_is_followed_by_another_and_nothing_is_missed() {
    let scene = OnStandIn::with(&[FOREIGN], Gates::open().await).await;
    let agent = scene.agent(&[]);
    agent.wait_for_message("watching the Node").await.unwrap();
    scene.server.reset_connections();
    scene.set_taints(&[FOREIGN, TAINT]);
    scene.wait_for_taints(&[FOREIGN]).await;
    agent
        .wait_for_message("failed to watch the Node; trying again")
        .await
        .unwrap();
    agent
        .wait_for_message("the watch of the Node works again")
        .await
        .unwrap();
}

#[tokio::test]
async fn where_streaming_lists_are_refused_it_lists_and_watches_and_remembers() {
    let options = Options {
        streaming_lists: false,
        ..Options::default()
    };
    let scene = OnStandIn::with_options(options, &[TAINT], Gates::open().await).await;
    let _agent = scene.agent(&[]);
    scene.wait_for_taints(&[]).await;
    // The list has everything that the patch needs. The patch and the second watch are sent at the same time.
    scene.wait_for(Verb::Watch, 2).await;
    assert_eq!(scene.verbs()[..2], [Verb::Watch, Verb::List]);
    assert_eq!(
        (
            scene.count(Verb::Watch),
            scene.count(Verb::List),
            scene.count(Verb::Patch)
        ),
        (2, 1, 1)
    );
    scene.server.end_watches();
    scene.wait_for(Verb::List, 2).await;
    let refused = scene
        .all(Verb::Watch)
        .iter()
        .filter(|request| request.uri.contains("sendInitialEvents"))
        .count();
    assert_eq!(refused, 1, "it does not ask again");
}

/// Otherwise `/statusz` of every healthy node shows an error, and a command that waits too long gives it as the reason.
#[tokio::test]
async fn a_refused_streaming_list_is_not_the_last_error() {
    let options = Options {
        streaming_lists: false,
        ..Options::default()
    };
    let scene = OnStandIn::with_options(options, &[FOREIGN], Gates::open().await).await;
    let agent = scene.agent(&["--listen", "127.0.0.1:0"]);
    agent.wait_for_message("watching the Node").await.unwrap();
    scene.wait_for(Verb::Watch, 2).await;
    let status = agent.status().await.unwrap();
    assert_eq!(status["api"]["lastError"], json!(null), "{status:#}");
}

#[tokio::test]
async fn a_real_server_without_streaming_lists_costs_four_requests() {
    let Some(cluster) = cluster::fresh(&["--feature-gates=WatchList=false"]).await else {
        return;
    };
    let gates = Gates::open().await;
    let kubeconfig = gates.tainted_node(&cluster, "node", &[TAINT]).await;
    let agent = gates.agent("node", &kubeconfig, &[]);
    agent.wait_for_message("removed the taint").await.unwrap();
    agent.wait_for_message("watching the Node").await.unwrap();
    let requests = cluster
        .requests(|entry| entry.node.as_deref() == Some("node"))
        .await
        .unwrap();
    let mut verbs: Vec<_> = requests
        .iter()
        .map(|request| request.verb.as_str())
        .collect();
    assert_eq!(verbs[..2], ["watch", "list"], "{requests:#?}");
    // The list has everything that the patch needs. The patch and the second watch are sent at the same time.
    verbs.sort_unstable();
    assert_eq!(verbs, ["list", "patch", "watch", "watch"], "{requests:#?}");
}

#[tokio::test]
async fn a_node_that_is_not_there_is_waited_for() {
    let Some(scene) = OnCluster::with("exists", &[], Gates::open().await).await else {
        return;
    };
    let agent = scene
        .gates
        .agent("does-not-exist-yet", &scene.kubeconfig, &[]);
    agent
        .wait_for_message("there is no Node with this name; waiting for it")
        .await
        .unwrap();
    scene
        .cluster
        .create_node("does-not-exist-yet", &[TAINT])
        .await
        .unwrap();
    agent.wait_for_message("removed the taint").await.unwrap();
}

#[tokio::test]
async fn a_node_that_is_deleted_and_made_anew_starts_afresh_and_the_old_one_is_not_acted_on() {
    let Some(scene) = OnCluster::with("recreated", &[TAINT], Gates::closed().await).await else {
        return;
    };
    let agent = scene.agent(&[]);
    agent.wait_for_message("saw the taint").await.unwrap();
    scene.cluster.delete_node(scene.name).await.unwrap();
    agent
        .wait_for_message("there is no Node with this name; waiting for it")
        .await
        .unwrap();
    scene.gates.open_both();
    scene
        .cluster
        .create_node(scene.name, &[FOREIGN, TAINT])
        .await
        .unwrap();
    scene.wait_for_taints(&[FOREIGN]).await;
    assert!(
        scene
            .requests()
            .await
            .iter()
            .all(|request| request.code == Some(200))
    );
}
