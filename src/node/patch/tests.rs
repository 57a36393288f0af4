use serde_json::json;

use super::*;

fn node(taints: &Value) -> (NodeView, Value) {
    let object = json!({"metadata": {"name": "node", "uid": "u", "resourceVersion": "1"}, "spec": {"taints": taints}});
    (serde_json::from_value(object.clone()).unwrap(), object)
}

fn matcher(key: &str, value: Option<&str>) -> TaintMatcher {
    TaintMatcher {
        key: key.into(),
        value: value.map(Into::into),
        effect: None,
    }
}

fn remove(node: &NodeView, matchers: &[TaintMatcher]) -> Option<Change> {
    remove_by(node, matchers, false)
}

fn remove_by(
    node: &NodeView,
    matchers: &[TaintMatcher],
    follows_from_node: bool,
) -> Option<Change> {
    removal(node, |taint| {
        let matcher = matchers.iter().find(|matcher| matcher.matches(taint))?;
        Some(Wish {
            matcher,
            follows_from_node,
        })
    })
}

#[test]
fn every_matching_taint_is_tested_and_removed_highest_index_first() {
    let (node, _) = node(&json!([
        {"key": "k", "value": "true", "effect": "NoSchedule"},
        {"key": "foreign", "effect": "NoExecute"},
        {"key": "k", "effect": "NoExecute"},
    ]));
    let removal = remove(&node, &[matcher("k", None)]).unwrap();
    assert_eq!(
        serde_json::to_value(&removal.operations).unwrap(),
        json!([
            {"op": "test", "path": "/metadata/uid", "value": "u"},
            {"op": "test", "path": "/spec/taints/2/key", "value": "k"},
            {"op": "test", "path": "/spec/taints/2/effect", "value": "NoExecute"},
            {"op": "remove", "path": "/spec/taints/2"},
            {"op": "test", "path": "/spec/taints/0/key", "value": "k"},
            {"op": "test", "path": "/spec/taints/0/effect", "value": "NoSchedule"},
            {"op": "remove", "path": "/spec/taints/0"},
        ])
    );
}

#[test]
fn the_value_is_tested_where_the_rule_names_one_and_an_empty_one_is_a_missing_field() {
    let (node, _) = node(
        &json!([{"key": "a", "value": "x", "effect": "NoSchedule"}, {"key": "b", "effect": "NoSchedule"}]),
    );
    let removal = remove(&node, &[matcher("a", Some("x")), matcher("b", Some(""))]).unwrap();
    let operations = serde_json::to_value(&removal.operations).unwrap();
    assert_eq!(
        operations[3],
        json!({"op": "test", "path": "/spec/taints/1/value", "value": null})
    );
    assert_eq!(
        operations[7],
        json!({"op": "test", "path": "/spec/taints/0/value", "value": "x"})
    );
}

#[test]
fn a_node_without_a_matching_taint_needs_no_patch() {
    let (node, _) = node(&json!([{"key": "foreign", "effect": "NoSchedule"}]));
    assert_eq!(remove(&node, &[matcher("k", None)]), None);
}

#[test]
fn a_foreign_taint_at_the_tested_index_makes_the_patch_fail() {
    let (seen, _) = node(&json!([{"key": "k", "effect": "NoSchedule"}]));
    let removal = remove(&seen, &[matcher("k", None)]).unwrap();
    for foreign in [
        json!([{"key": "foreign", "effect": "NoSchedule"}, {"key": "k", "effect": "NoSchedule"}]),
        json!([{"key": "k", "effect": "NoExecute"}, {"key": "k", "effect": "NoSchedule"}]),
        json!([]),
    ] {
        let (_, mut object) = node(&foreign);
        assert!(
            json_patch::patch(&mut object, &removal.operations).is_err(),
            "{foreign}"
        );
    }
}

fn taint(key: &str) -> Taint {
    Taint {
        key: key.into(),
        effect: "NoSchedule".into(),
        ..Taint::default()
    }
}

#[test]
fn a_taint_is_put_back_behind_the_others() {
    let (node, mut object) = node(&json!([{"key": "foreign", "effect": "NoExecute"}]));
    let change = addition(&node, &[taint("k")]).unwrap();
    json_patch::patch(&mut object, &change.operations).unwrap();
    assert_eq!(
        object["spec"]["taints"],
        json!([{"key": "foreign", "effect": "NoExecute"}, {"key": "k", "effect": "NoSchedule"}])
    );
}

#[test]
fn a_taint_with_the_same_effect_is_not_put_back_even_if_its_value_differs() {
    let (node, _) = node(&json!([{"key": "k", "value": "v", "effect": "NoSchedule"}]));
    assert_eq!(addition(&node, &[taint("k")]), None);
}

#[test]
fn the_patch_fails_if_the_last_taint_was_removed_meanwhile() {
    let (seen, mut object) = node(&json!([{"key": "foreign", "effect": "NoExecute"}]));
    object["spec"].as_object_mut().unwrap().remove("taints");
    let change = addition(&seen, &[taint("k")]).unwrap();
    assert!(json_patch::patch(&mut object, &change.operations).is_err());
}

#[test]
fn the_patch_fails_if_a_first_taint_was_added_meanwhile() {
    let (seen, mut object) = node(&json!([]));
    object["spec"]["taints"] = json!([{"key": "foreign", "effect": "NoExecute"}]);
    let change = addition(&seen, &[taint("k")]).unwrap();
    assert!(json_patch::patch(&mut object, &change.operations).is_err());
}

#[test]
fn a_recreated_node_makes_the_patch_fail() {
    let (seen, mut object) = node(&json!([{"key": "k", "effect": "NoSchedule"}]));
    object["metadata"]["uid"] = json!("another");
    assert!(
        json_patch::patch(
            &mut object,
            &remove(&seen, &[matcher("k", None)]).unwrap().operations
        )
        .is_err()
    );
}

#[test]
fn a_removal_that_follows_from_the_node_is_for_this_version_alone() {
    let (seen, object) = node(&json!([{"key": "k", "effect": "NoSchedule"}]));
    for follows_from_node in [false, true] {
        let removal = remove_by(&seen, &[matcher("k", None)], follows_from_node).unwrap();
        for (version, succeeds) in [("1", true), ("2", !follows_from_node)] {
            let mut object = object.clone();
            object["metadata"]["resourceVersion"] = json!(version);
            let result = json_patch::patch(&mut object, &removal.operations);
            assert_eq!(result.is_ok(), succeeds, "{follows_from_node} {version}");
        }
    }
}
