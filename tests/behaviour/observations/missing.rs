//! A condition that a Node does not have while all is well.

use serde_json::{Value, json};

use super::since_boot::{ANOTHER_BOOT, LONG_AGO, ago, report, set_node, this_boot};
use super::{gates, open_last, requests, said};
use crate::scene::{OnCluster, TAINT};

const PROBLEM: &str = "{name: network, nodeCondition: {type: NetworkUnavailable, status: \"False\", missing: \"False\"}}";
const COUNTS: &str = "the Node has no condition NetworkUnavailable, which counts as False";

/// The status with the condition of the gate [`PROBLEM`].
fn with_problem(mut status: Value, problem: &str, since: &str) -> Value {
    let problem = json!({
        "type": "NetworkUnavailable",
        "status": problem,
        "reason": "NoRoute",
        "lastTransitionTime": since,
    });
    status["conditions"].as_array_mut().unwrap().push(problem);
    status
}

/// nrc#283 (D19).
#[tokio::test]
async fn a_condition_that_is_missing_while_all_is_well_opens_its_gate_and_one_that_is_there_counts()
{
    let Some(scene) = OnCluster::with("missing", &[TAINT], gates(&[PROBLEM]).await).await else {
        return;
    };
    let agent = scene.agent(&[]);
    // The Node is there, but nothing shows that it has a kubelet.
    let reason = "the Node has no condition NetworkUnavailable, but the kubelet has not written its own conditions either";
    said(&agent, "network", "unknown", reason).await;
    let well = || report(Some(&this_boot()), &ago(0));
    set_node(&scene, &well()).await;
    said(&agent, "network", "open", COUNTS).await;
    for (problem, state, reason) in [
        ("True", "closed", "is True, not False: NoRoute"),
        ("False", "open", "is False"),
        ("Unknown", "closed", "is Unknown, not False: NoRoute"),
    ] {
        set_node(&scene, &with_problem(well(), problem, &ago(0))).await;
        said(&agent, "network", state, reason).await;
    }
    set_node(&scene, &well()).await;
    open_last(&scene).await;
    let expected = ["watch /api/v1/nodes", "patch /api/v1/nodes/missing"];
    assert_eq!(requests(&scene).await, expected);
}

#[tokio::test]
async fn after_a_reboot_a_missing_condition_opens_no_gate_until_the_kubelet_has_reported() {
    for (name, boot_id, heartbeat) in [
        ("missing-boot", Some(ANOTHER_BOOT), ago(1)),
        ("missing-beat", None, LONG_AGO.to_owned()),
    ] {
        let gates = gates(&[PROBLEM]).await;
        let Some(scene) = OnCluster::with(name, &[TAINT], gates).await else {
            return;
        };
        set_node(&scene, &report(boot_id, &heartbeat)).await;
        let agent = scene.agent(&[]);
        let reason = "the kubelet has not reported since this boot: ";
        said(&agent, "network", "unknown", reason).await;
        scene.gates.health.set(200);
        said(&agent, "last", "open", "").await;
        assert_eq!(scene.taints().await, [TAINT]);
        set_node(&scene, &report(Some(&this_boot()), &ago(0))).await;
        scene.wait_for_taints(&[]).await;
        said(&agent, "network", "open", COUNTS).await;
    }
}

#[tokio::test]
async fn a_condition_from_before_the_boot_is_not_missing() {
    let gates = gates(&[PROBLEM]).await;
    let Some(scene) = OnCluster::with("missing-stale", &[TAINT], gates).await else {
        return;
    };
    let reported = || report(Some(&this_boot()), &ago(0));
    set_node(&scene, &with_problem(reported(), "False", LONG_AGO)).await;
    let agent = scene.agent(&[]);
    let reason =
        "condition NetworkUnavailable is False, but its last write is from 2020-01-01T00:00:00Z";
    said(&agent, "network", "unknown", reason).await;
    // Its component deletes it.
    set_node(&scene, &reported()).await;
    said(&agent, "network", "open", COUNTS).await;
    open_last(&scene).await;
}
