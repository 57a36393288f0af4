//! Requests that are not answered, or wait for another try, when the configuration changes.

use std::time::Duration;

use serde_json::Value;
use testkit::api::{Answer, Verb};
use testkit::node;

use super::{NEW, NEW_RULE};
use crate::condition::{FAILED, publishing};
use crate::retaint::{just_booted, retainting};
use crate::scene::{FOREIGN, Gates, OnStandIn, TAINT};
use testkit::config_map::ConfigMap;

/// The key of [`TAINT`].
const NOT_READY: &str = "example.com/not-ready";

/// The agent aborted the PATCH for the rule, kept the connection, and read the Node before the next PATCH, which is for
/// another rule.
#[track_caller]
fn assert_broken_off(scene: &OnStandIn) {
    let verbs = [Verb::Watch, Verb::Patch, Verb::Get, Verb::Patch];
    assert_eq!(scene.verbs(), verbs);
    let requests = scene.server.requests();
    assert!(requests.iter().all(|request| request.connection == 0));
    let both = [&requests[1], &requests[3]].map(|patch| patch.body.contains(NOT_READY));
    assert_eq!(both, [true, false], "{requests:#?}");
}

#[tokio::test]
async fn a_patch_under_way_for_a_rule_that_is_gone_is_broken_off_and_the_node_read_before_the_next()
{
    for is_gone in [true, false] {
        let scene = OnStandIn::with(&[], Gates::open().await).await;
        let both = scene.gates.rule("") + NEW_RULE;
        let mut map = ConfigMap::mount(scene.gates.dir.path(), &both);
        scene.server.delete_node("node");
        scene.server.respond_next(Verb::Patch, 1, Answer::Hang);
        let agent = scene.agent(&[]);
        for gate in ["conflist", "agent"] {
            let is_open = |line: &Value| line["gate"] == gate && line["state"] == "open";
            agent.wait_for_log(is_open).await.unwrap();
        }
        // Both rules are ready when the Node is seen, so one patch removes both taints.
        scene
            .server
            .create_node(node("node", &[TAINT, FOREIGN, NEW]));
        scene.wait_for(Verb::Patch, 1).await;
        // Or the rule is still there, but no longer wants the change.
        let dry = scene.gates.rule("  dryRun: true\n") + NEW_RULE;
        map.swap(if is_gone { NEW_RULE } else { &dry });
        agent.wait_for_message("removed the taint").await.unwrap();
        scene.wait_for_taints(&[TAINT, FOREIGN]).await;
        assert_broken_off(&scene);
    }
}

#[tokio::test]
async fn a_patch_that_was_broken_off_after_it_took_effect_is_not_taken_for_somebody_elses() {
    let scene = OnStandIn::with(&[TAINT, FOREIGN], Gates::open().await).await;
    let mut map = ConfigMap::mount(scene.gates.dir.path(), &scene.gates.rule(""));
    scene
        .server
        .respond_next(Verb::Patch, 1, Answer::ApplyAndHang);
    let agent = scene.agent(&[]);
    scene.wait_for_taints(&[FOREIGN]).await;
    map.swap(&scene.gates.rule("  dryRun: true\n"));
    let gone = "the taint is gone, after a removal that the server did not answer";
    agent.wait_for_message(gone).await.unwrap();
    assert_eq!(scene.count(Verb::Patch), 1);
}

#[tokio::test]
async fn a_put_back_under_way_for_a_rule_that_is_gone_is_broken_off_too() {
    let scene = OnStandIn::with(&[FOREIGN, NEW], Gates::closed().await).await;
    let mut map = ConfigMap::mount(scene.gates.dir.path(), &retainting(&scene.gates));
    scene.server.respond_next(Verb::Patch, 1, Answer::Hang);
    let Some(agent) = just_booted(&scene.gates, "node", &scene.kubeconfig, &[]) else {
        return;
    };
    scene.wait_for(Verb::Patch, 1).await;
    map.swap(NEW_RULE);
    agent.wait_for_message("removed the taint").await.unwrap();
    scene.wait_for_taints(&[FOREIGN]).await;
    assert_broken_off(&scene);
}

#[tokio::test]
async fn a_condition_under_way_that_is_not_published_any_more_is_broken_off_and_holds_up_no_other()
{
    let scene = OnStandIn::with(&[FOREIGN], Gates::closed().await).await;
    let mut map = ConfigMap::mount(
        scene.gates.dir.path(),
        &publishing(&scene.gates, "example.com/One"),
    );
    scene
        .server
        .respond_next(Verb::Other, usize::MAX, Answer::Hang);
    let agent = scene.agent(&[]);
    scene.wait_for(Verb::Other, 1).await;
    map.swap(&publishing(&scene.gates, "example.com/Other"));
    scene.wait_for(Verb::Other, 2).await;
    assert_eq!(agent.count(FAILED), 0, "it was not waited for");
    let bodies = scene.all(Verb::Other).into_iter().map(|write| write.body);
    let others: Vec<_> = bodies
        .map(|body| body.contains("example.com/Other"))
        .collect();
    assert_eq!(others, [false, true]);
}

#[tokio::test]
async fn a_rule_that_disappears_is_never_acted_on_again_whatever_became_of_its_patch() {
    let unavailable = Answer::failure(503, "ServiceUnavailable", "not now");
    let cases = [
        (Answer::too_many_requests(1), None),
        (Answer::conflict("node"), Some(unavailable)),
        (Answer::denied(403, "Forbidden", "node", "no"), None),
    ];
    for (to_patch, to_get) in cases {
        let scene = OnStandIn::with(&[TAINT, FOREIGN, NEW], Gates::open().await).await;
        let mut map = ConfigMap::mount(scene.gates.dir.path(), &scene.gates.rule(""));
        let all = usize::MAX;
        scene
            .server
            .respond_next(Verb::Patch, all, to_patch.clone());
        let gets = to_get.map(|to_get| scene.server.respond_next(Verb::Get, all, to_get));
        let agent = scene.agent(&[]);
        scene.wait_for(Verb::Patch, 1).await;
        scene.wait_for(Verb::Get, gets.into_iter().count()).await;
        map.swap(NEW_RULE);
        let gone = agent.wait_for_message("stopped the rule").await;
        assert_eq!(gone.unwrap()["rule"], "cni");
        let before = scene.count(Verb::Patch);
        scene.server.respond_as_usual();
        scene.wait_for_taints(&[TAINT, FOREIGN]).await;
        for patch in &scene.all(Verb::Patch)[before..] {
            assert!(!patch.body.contains(NOT_READY), "{to_patch:?}: {patch:?}");
        }
    }
}

#[tokio::test]
async fn a_rule_of_another_name_does_not_wait_out_the_denial_of_the_one_before() {
    let scene = OnStandIn::with(&[FOREIGN, TAINT], Gates::closed().await).await;
    let rule = |name: &str| format!("- {{name: {name}, taint: {{key: {NOT_READY}}}, gates: []}}\n");
    let mut map = ConfigMap::mount(scene.gates.dir.path(), &rule("one"));
    let denied = Answer::denied(403, "Forbidden", "node", "no");
    scene.server.respond_next(Verb::Patch, 3, denied);
    let agent = scene.agent(&[]);
    // After the third try, the wait is at least 4 s.
    scene.wait_for(Verb::Get, 3).await;
    map.swap(&rule("two"));
    scene.wait_for_taints(&[FOREIGN]).await;
    let removed = agent.wait_for_message("removed the taint").await.unwrap();
    assert_eq!(removed["rule"], "two");
    let patches = scene.all(Verb::Patch);
    let waited = patches[3].at - patches[2].at;
    assert!(waited < Duration::from_secs(4), "{waited:?}");
}
