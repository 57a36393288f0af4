//! `allocatable` and `nodeCondition`: the status of the own Node. Pure.

use k8s_openapi::apimachinery::pkg::api::resource::Quantity;

use crate::config::{Allocatable, NodeCondition};
use crate::gate::Outcome;
use crate::node::view::NodeView;
use crate::text::excerpt;

pub(super) fn allocatable(expected: &Allocatable, node: &NodeView) -> Outcome {
    let resource = &expected.resource;
    let Some(Quantity(quantity)) = node.allocatable.get(resource) else {
        return Outcome::Closed(format!("the Node has no allocatable {resource}"));
    };
    let seen = format!("allocatable {resource} is {}", excerpt(quantity));
    if is_nothing(quantity) {
        Outcome::Closed(seen)
    } else {
        Outcome::Open(seen)
    }
}

/// Whether a quantity (apimachinery `resource.Quantity`: a decimal number, then a suffix or an exponent) is not above
/// zero: it is negative, or no digit of its number is other than 0.
fn is_nothing(quantity: &str) -> bool {
    let number = quantity
        .split(|c: char| c.is_ascii_alphabetic())
        .next()
        .unwrap_or_default();
    number.starts_with('-') || !number.contains(|c: char| ('1'..='9').contains(&c))
}

pub(super) fn condition(expected: &NodeCondition, node: &NodeView) -> Outcome {
    let NodeCondition { kind, status } = expected;
    let Some(condition) = node
        .conditions
        .iter()
        .find(|condition| condition.type_ == *kind)
    else {
        return Outcome::Closed(format!("the Node has no condition {kind}"));
    };
    let seen = format!("condition {kind} is {}", excerpt(&condition.status));
    if condition.status == *status {
        return Outcome::Open(seen);
    }
    let told = [&condition.reason, &condition.message];
    let told = told.into_iter().flatten().filter(|text| !text.is_empty());
    let told = told.map(|text| excerpt(text));
    let parts: Vec<_> = std::iter::once(format!("{seen}, not {status}"))
        .chain(told)
        .collect();
    Outcome::Closed(parts.join(": "))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn node(status: &Value) -> NodeView {
        let metadata = json!({"name": "node", "uid": "1", "resourceVersion": "1"});
        serde_json::from_value(json!({"metadata": metadata, "status": status})).unwrap()
    }

    #[test]
    fn a_resource_is_there_if_its_quantity_is_above_zero() {
        let expected = Allocatable {
            resource: "nvidia.com/gpu".into(),
        };
        let look = |quantity: &str| {
            let other = "nvidia.com/gpu.shared";
            let status = json!({"allocatable": {"nvidia.com/gpu": quantity, other: "7"}});
            allocatable(&expected, &node(&status))
        };
        for quantity in ["", "0", "0k", "0Ki", "0.0", "0e3", "-1", "-0", "+0m"] {
            let seen = format!("allocatable nvidia.com/gpu is {quantity}");
            assert_eq!(look(quantity), Outcome::Closed(seen));
        }
        for quantity in [
            "1", "8", "500m", "0.5", ".5", "1e3", "1E3", "10", "1E", "+2", "107374Ki",
        ] {
            let seen = format!("allocatable nvidia.com/gpu is {quantity}");
            assert_eq!(look(quantity), Outcome::Open(seen));
        }
        for status in [
            json!({}),
            json!({"allocatable": null}),
            json!({"allocatable": {"nvidia.com/gpu.shared": "1"}, "capacity": {"nvidia.com/gpu": "1"}}),
        ] {
            let missing = Outcome::Closed("the Node has no allocatable nvidia.com/gpu".into());
            assert_eq!(allocatable(&expected, &node(&status)), missing, "{status}");
        }
    }

    fn look(wanted: &str, conditions: &Value) -> Outcome {
        let expected = NodeCondition {
            kind: "Ready".into(),
            status: wanted.into(),
        };
        condition(&expected, &node(&json!({"conditions": conditions})))
    }

    #[test]
    fn a_condition_holds_with_the_wanted_status_and_otherwise_says_why() {
        let ready = |status: &str, reason: &str, message: &str| {
            json!([
                {"type": "MemoryPressure", "status": "False"},
                {"type": "Ready", "status": status, "reason": reason, "message": message},
            ])
        };
        for (wanted, conditions, expected) in [
            (
                "True",
                json!([]),
                Outcome::Closed("the Node has no condition Ready".into()),
            ),
            (
                "True",
                json!([{"type": "ready", "status": "True"}]),
                Outcome::Closed("the Node has no condition Ready".into()),
            ),
            (
                "True",
                ready("True", "KubeletReady", "posting"),
                Outcome::Open("condition Ready is True".into()),
            ),
            (
                "False",
                ready("False", "", ""),
                Outcome::Open("condition Ready is False".into()),
            ),
            (
                "True",
                ready("False", "KubeletNotReady", "cni plugin not\ninitialized"),
                Outcome::Closed(
                    "condition Ready is False, not True: KubeletNotReady: cni plugin not\\ninitialized"
                        .into(),
                ),
            ),
            (
                "False",
                ready("Unknown", "NodeStatusUnknown", ""),
                Outcome::Closed("condition Ready is Unknown, not False: NodeStatusUnknown".into()),
            ),
            (
                "True",
                json!([{"type": "Ready", "status": "False"}]),
                Outcome::Closed("condition Ready is False, not True".into()),
            ),
        ] {
            assert_eq!(look(wanted, &conditions), expected, "{conditions}");
        }
        let long = look("True", &ready("False", "R", &"x".repeat(10_000)));
        assert!(long.message().chars().count() < 300, "{long:?}");
    }
}
