use serde_json::json;

use super::*;

fn view(value: serde_json::Value) -> NodeView {
    serde_json::from_value(value).unwrap()
}

fn version(uid: &str, resource_version: &str) -> NodeView {
    view(json!({"metadata": {"name": "node", "uid": uid, "resourceVersion": resource_version}}))
}

#[test]
fn a_node_without_labels_spec_or_taints_has_none() {
    let node = version("u", "7");
    assert_eq!(
        (
            node.metadata.resource_version,
            node.metadata.labels.len(),
            node.taints.len()
        ),
        (7, 0, 0)
    );
    let nulls = json!({"metadata": {"name": "node", "uid": "u", "resourceVersion": "7", "labels": null}, "spec": {"taints": null}});
    assert_eq!(view(nulls), node);
}

#[test]
fn an_older_node_arriving_after_a_newer_one_is_dropped() {
    let mut latest = Latest::default();
    assert!(latest.observe(version("u", "10")));
    assert!(
        !latest.observe(version("u", "9")),
        "9 compares below 10, as integers do and strings do not"
    );
    assert!(!latest.observe(version("u", "10")));
    assert!(latest.observe(version("u", "11")));
    assert_eq!(latest.get().unwrap().metadata.resource_version, 11);
}

#[test]
fn after_a_restored_backup_the_relisted_node_is_recorded_although_its_version_is_lower() {
    let mut latest = Latest::default();
    latest.observe(version("u", "1000"));
    latest.begin_relist();
    assert!(latest.observe(version("u", "50")));
    assert!(
        !latest.observe(version("u", "49")),
        "from then on versions count again"
    );
    latest.end_relist();
    assert!(latest.get().is_some());
}

/// The answer to a write of a condition may arrive late, or after the answer to a removal.
#[test]
fn an_answer_that_arrives_while_a_list_begins_undoes_no_newer_node() {
    let mut latest = Latest::default();
    latest.observe(version("u", "10"));
    latest.begin_relist();
    assert!(!latest.answered(version("u", "9")), "an older answer");
    assert!(latest.answered(version("u", "12")), "a newer answer");
    assert!(!latest.answered(version("u", "11")));
    assert!(!latest.observe(version("u", "11")), "a list from before it");
    latest.end_relist();
    assert_eq!(latest.get().unwrap().metadata.resource_version, 12);
    assert!(latest.observe(version("u", "13")));

    latest.begin_relist();
    assert!(!latest.answered(version("u", "9")));
    assert!(latest.observe(version("u", "5")), "a restored backup");
    latest.begin_relist();
    assert!(latest.answered(version("u", "6")));
    latest.end_relist();
    assert_eq!(latest.get(), None, "an answer is no part of the list");
}

#[test]
fn a_node_that_the_new_list_does_not_have_no_longer_exists() {
    let mut latest = Latest::default();
    latest.observe(version("u", "1"));
    latest.begin_relist();
    latest.end_relist();
    assert_eq!(latest.get(), None);
}

#[test]
fn a_recreated_node_is_recorded_although_its_version_is_lower_and_the_deletion_of_the_old_one_is_ignored()
 {
    let mut latest = Latest::default();
    latest.observe(version("old", "10"));
    assert!(latest.observe(version("new", "3")));
    assert!(!latest.deleted("old"));
    assert_eq!(latest.get().unwrap().metadata.uid, "new");
    assert!(latest.deleted("new"));
    assert_eq!(latest.get(), None);
}

#[test]
fn a_node_that_karpenter_has_not_registered_awaits_registration() {
    let node = |labels: serde_json::Value, effect: &str| {
        view(json!({
            "metadata": {"name": "node", "uid": "u", "resourceVersion": "1", "labels": labels},
            "spec": {"taints": [{"key": "karpenter.sh/unregistered", "effect": effect}]},
        }))
    };
    assert!(node(json!({}), "NoExecute").awaits_registration());
    assert!(
        !node(json!({}), "NoSchedule").awaits_registration(),
        "Karpenter drops only the NoExecute one"
    );
    assert!(!node(json!({"karpenter.sh/registered": "true"}), "NoExecute").awaits_registration());
    assert!(
        !node(
            json!({"karpenter.sh/do-not-sync-taints": "true"}),
            "NoExecute"
        )
        .awaits_registration()
    );
    assert!(!version("u", "1").awaits_registration());
}

#[test]
fn a_node_of_a_nodepool_may_be_tainted_until_it_is_labelled_as_registered() {
    let node = |labels| {
        view(
            json!({"metadata": {"name": "node", "uid": "u", "resourceVersion": "1", "labels": labels}}),
        )
    };
    assert!(node(json!({"karpenter.sh/nodepool": "p"})).may_be_tainted_by_karpenter());
    let registered = json!({"karpenter.sh/nodepool": "p", "karpenter.sh/registered": "true"});
    assert!(!node(registered).may_be_tainted_by_karpenter());
    assert!(!node(json!({})).may_be_tainted_by_karpenter());
}
