//! Nodes, as tests write and read them.

use serde_json::{Value, json};

/// A Node with these taints, each written as `kubectl taint` does: `KEY[=VALUE]:EFFECT`.
///
/// `KEY=:EFFECT` has an empty value, `KEY:EFFECT` none.
#[must_use]
pub fn node(name: &str, taints: &[&str]) -> Value {
    let taints: Vec<Value> = taints.iter().map(|taint| parse(taint)).collect();
    json!({
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name},
        "spec": {"taints": taints},
    })
}

/// The taints of a Node, in their order, in the format of [`node`].
#[must_use]
pub fn taints(node: &Value) -> Vec<String> {
    let taints = node["spec"]["taints"].as_array();
    taints.into_iter().flatten().map(format).collect()
}

fn parse(taint: &str) -> Value {
    let (rest, effect) = taint.rsplit_once(':').expect("KEY[=VALUE]:EFFECT");
    match rest.split_once('=') {
        Some((key, value)) => json!({"key": key, "value": value, "effect": effect}),
        None => json!({"key": rest, "effect": effect}),
    }
}

fn format(taint: &Value) -> String {
    let field = |name: &str| taint[name].as_str().unwrap_or_default();
    match taint.get("value") {
        Some(_) => format!("{}={}:{}", field("key"), field("value"), field("effect")),
        None => format!("{}:{}", field("key"), field("effect")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn taints_are_read_as_they_were_written() {
        let written = ["a:NoSchedule", "b=x:NoExecute", "c=:PreferNoSchedule"];
        assert_eq!(taints(&node("n", &written)), written);
    }

    #[test]
    fn a_node_without_the_field_has_no_taints() {
        assert!(taints(&json!({"spec": {}})).is_empty());
    }
}
