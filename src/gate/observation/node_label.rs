//! `nodeLabel`: a label of the Node.

use crate::config::NodeLabel;
use crate::gate::Outcome;
use crate::node::view::NodeView;

pub(super) fn judge(expected: &NodeLabel, node: &NodeView) -> Outcome {
    let key = &expected.key;
    let Some(value) = node.metadata.labels.get(key) else {
        return Outcome::Closed(format!("the Node has no label {key}"));
    };
    match &expected.value {
        Some(expected) if expected != value => {
            Outcome::Closed(format!("label {key} is \"{value}\", not \"{expected}\""))
        }
        _ => Outcome::Open(format!("label {key} is \"{value}\"")),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    const KEY: &str = "katacontainers.io/kata-runtime";

    #[test]
    fn a_label_opens_with_the_expected_value_or_with_any_if_none_is_expected() {
        let judge = |value: Option<&str>, labels: Value| {
            let metadata =
                json!({"name": "n", "uid": "1", "resourceVersion": "1", "labels": labels});
            let node = serde_json::from_value(json!({"metadata": metadata})).unwrap();
            let expected = NodeLabel {
                key: KEY.into(),
                value: value.map(Into::into),
            };
            judge(&expected, &node)
        };
        let missing = Outcome::Closed(format!("the Node has no label {KEY}"));
        for labels in [json!({}), json!(null), json!({"kata-runtime": "true"})] {
            assert_eq!(judge(None, labels.clone()), missing, "{labels}");
            assert_eq!(judge(Some(""), labels.clone()), missing, "{labels}");
        }
        let open = |value| Outcome::Open(format!("label {KEY} is \"{value}\""));
        assert_eq!(judge(None, json!({KEY: "cleanup"})), open("cleanup"));
        assert_eq!(judge(Some("true"), json!({KEY: "true"})), open("true"));
        assert_eq!(judge(Some(""), json!({KEY: ""})), open(""));
        for (expected, value) in [
            ("true", "cleanup"),
            ("true", ""),
            ("", "true"),
            ("true", "True"),
        ] {
            let seen = format!("label {KEY} is \"{value}\", not \"{expected}\"");
            assert_eq!(
                judge(Some(expected), json!({KEY: value})),
                Outcome::Closed(seen)
            );
        }
    }
}
