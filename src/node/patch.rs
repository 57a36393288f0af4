//! The only write there is: a JSON Patch that can take off the taints it names and nothing else. Pure.

use json_patch::jsonptr::PointerBuf;
use json_patch::{Patch, PatchOperation, RemoveOperation, TestOperation};
use k8s_openapi::api::core::v1::Taint;
use serde_json::Value;

use super::view::NodeView;
use crate::taint::TaintMatcher;

/// The removal of some taints from one Node.
#[derive(Debug, Clone, PartialEq)]
pub struct Removal {
    /// Of the Node.
    pub uid: String,
    /// What it takes off.
    pub taints: Vec<Taint>,
    /// Every `remove` stands behind `test`s of what it removes, so that another writer's taint that has moved to
    /// this index makes the whole patch fail (422) rather than vanish. `spec.taints` is an atomic list without a
    /// patch strategy: any other type of patch would replace the taints of all writers.
    pub operations: Patch,
}

/// Takes off the taints that `select` gives a matcher for; `None` if there are none.
///
/// Highest index first, so that no `remove` moves a taint that a later operation names.
#[must_use]
pub fn removal<'a>(
    node: &NodeView,
    select: impl Fn(&Taint) -> Option<&'a TaintMatcher>,
) -> Option<Removal> {
    let mut taints = Vec::new();
    let mut operations = vec![test(["metadata", "uid"], node.metadata.uid.as_str().into())];
    for (index, taint) in node.taints.iter().enumerate().rev() {
        let Some(matcher) = select(taint) else {
            continue;
        };
        let index = index.to_string();
        let path = |field| ["spec", "taints", &index, field];
        operations.push(test(path("key"), taint.key.as_str().into()));
        operations.push(test(path("effect"), taint.effect.as_str().into()));
        if matcher.value.is_some() {
            // The API leaves an empty value out, and a `test` of a missing field succeeds only with `null`.
            let value = taint.value.as_deref().filter(|value| !value.is_empty());
            operations.push(test(path("value"), value.map_or(Value::Null, Value::from)));
        }
        let path = PointerBuf::from_tokens(["spec", "taints", &index]);
        operations.push(PatchOperation::Remove(RemoveOperation { path }));
        taints.push(taint.clone());
    }
    (!taints.is_empty()).then_some(Removal {
        uid: node.metadata.uid.clone(),
        taints,
        operations: Patch(operations),
    })
}

fn test<const N: usize>(path: [&str; N], value: Value) -> PatchOperation {
    PatchOperation::Test(TestOperation {
        path: PointerBuf::from_tokens(path),
        value,
    })
}

#[cfg(test)]
mod tests {
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

    fn remove(node: &NodeView, matchers: &[TaintMatcher]) -> Option<Removal> {
        removal(node, |taint| {
            matchers.iter().find(|matcher| matcher.matches(taint))
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
}
