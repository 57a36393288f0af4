//! Changes of taints.

use serde_json::{Value, json};

use super::{Change, SPEC};

/// A list in place of the one that is there.
type List = (&'static str, Vec<Value>);

/// What is not the agent's to change of the taints of a Node of [`crate::installation::rich_node`].
pub(crate) fn of_taints(node: &Value) -> Vec<Change> {
    let taints = node["spec"]["taints"].as_array().unwrap();
    let message = "all other taints must stay unchanged";
    let lists = [additions(taints), edits(taints), removals(taints)].concat();
    let changes = lists.into_iter();
    changes
        .map(|(name, taints)| Change::of(name, [SPEC, "taints"], json!(taints), message))
        .collect()
}

fn without(taints: &[Value], keys: &[&str]) -> Vec<Value> {
    let mut taints = taints.to_vec();
    taints.retain(|taint| !keys.contains(&taint["key"].as_str().unwrap()));
    taints
}

fn additions(taints: &[Value]) -> Vec<List> {
    let with = |taints: &[Value], taint: Value| [taints, &[taint]].concat();
    let added = |key: &str, effect: &str| with(taints, json!({"key": key, "effect": effect}));
    let link = |value: &str, more: Value| {
        let mut taint = json!({"key": "example.com/link", "value": value, "effect": "NoSchedule"});
        taint
            .as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        with(taints, taint)
    };
    let time = json!({"timeAdded": "2026-01-01T00:00:00Z"});
    let storage = json!({"key": "example.com/storage", "value": "x", "effect": "NoSchedule"});
    let without_storage = without(taints, &["example.com/storage"]);
    let without_own = without(taints, &["example.com/not-ready"]);
    let foreign = json!({"key": "thief.example/x", "effect": "NoSchedule"});
    vec![
        (
            "a taint of others added",
            added("thief.example/x", "NoExecute"),
        ),
        (
            "an own taint added",
            added("example.com/not-ready", "NoSchedule"),
        ),
        (
            "an own taint with another effect put back",
            added("example.com/storage", "NoExecute"),
        ),
        (
            "an own taint with a value put back",
            with(&without_storage, storage),
        ),
        (
            "an own taint without its value put back",
            added("example.com/link", "NoSchedule"),
        ),
        (
            "an own taint with another value put back",
            link("down", json!({})),
        ),
        ("an own taint with a time put back", link("up", time)),
        (
            "an own taint removed and a foreign one added",
            with(&without_own, foreign),
        ),
    ]
}

fn edits(taints: &[Value]) -> Vec<List> {
    let changed = |index: usize, field: &str, value: &str| {
        let mut taints = taints.to_vec();
        taints[index][field] = json!(value);
        taints
    };
    let swapped = |one, other| {
        let mut taints = taints.to_vec();
        taints.swap(one, other);
        taints
    };
    let time = "2026-01-01T00:00:00Z";
    vec![
        (
            "the effect of an own taint changed",
            changed(0, "effect", "PreferNoSchedule"),
        ),
        (
            "the value of an own taint changed",
            changed(0, "value", "y"),
        ),
        (
            "the time of an own taint changed",
            changed(0, "timeAdded", time),
        ),
        (
            "the value of a foreign taint changed",
            changed(1, "value", "y"),
        ),
        (
            "the effect of a foreign taint changed",
            changed(1, "effect", "NoExecute"),
        ),
        (
            "the time of a foreign taint changed",
            changed(5, "timeAdded", time),
        ),
        ("an own and a foreign taint swapped", swapped(0, 1)),
        ("two own taints swapped", swapped(0, 2)),
    ]
}

fn removals(taints: &[Value]) -> Vec<List> {
    let without = |keys: &[&str]| without(taints, keys);
    vec![
        ("a foreign taint removed", without(&["foreign.example/one"])),
        (
            "an own and a foreign taint removed",
            without(&["example.com/not-ready", "foreign.example/two"]),
        ),
        (
            "the taint of a dry run removed",
            without(&["example.com/watched"]),
        ),
        (
            "the taint of a rule for other nodes removed",
            without(&["example.com/gpu"]),
        ),
        (
            "the taint of the node's readiness removed",
            without(&["node.kubernetes.io/not-ready"]),
        ),
        ("all taints removed", Vec::new()),
    ]
}
