//! `allocatable`: a resource in the status of the Node.

use k8s_openapi::apimachinery::pkg::api::resource::Quantity;

use crate::config::Allocatable;
use crate::gate::Outcome;
use crate::node::view::NodeView;
use crate::text::excerpt;

pub(super) fn judge(expected: &Allocatable, node: &NodeView) -> Outcome {
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

/// Whether a quantity is not above zero. A quantity is a decimal number, then a suffix or an exponent (apimachinery
/// `resource.Quantity`).
fn is_nothing(quantity: &str) -> bool {
    let number = quantity
        .split(|c: char| c.is_ascii_alphabetic())
        .next()
        .unwrap_or_default();
    number.starts_with('-') || !number.contains(|c: char| ('1'..='9').contains(&c))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_resource_is_there_if_its_quantity_is_above_zero() {
        let node = |status: &serde_json::Value| -> NodeView {
            let metadata = json!({"name": "node", "uid": "1", "resourceVersion": "1"});
            serde_json::from_value(json!({"metadata": metadata, "status": status})).unwrap()
        };
        let expected = Allocatable {
            resource: "nvidia.com/gpu".into(),
        };
        let outcome = |quantity: &str| {
            let other = "nvidia.com/gpu.shared";
            let status = json!({"allocatable": {"nvidia.com/gpu": quantity, other: "7"}});
            judge(&expected, &node(&status))
        };
        for quantity in ["", "0", "0k", "0Ki", "0.0", "0e3", "-1", "-0", "+0m"] {
            let seen = format!("allocatable nvidia.com/gpu is {quantity}");
            assert_eq!(outcome(quantity), Outcome::Closed(seen));
        }
        for quantity in [
            "1", "8", "500m", "0.5", ".5", "1e3", "1E3", "10", "1E", "+2", "107374Ki",
        ] {
            let seen = format!("allocatable nvidia.com/gpu is {quantity}");
            assert_eq!(outcome(quantity), Outcome::Open(seen));
        }
        for status in [
            json!({}),
            json!({"allocatable": null}),
            json!({"allocatable": {"nvidia.com/gpu.shared": "1"}, "capacity": {"nvidia.com/gpu": "1"}}),
        ] {
            let missing = Outcome::Closed("the Node has no allocatable nvidia.com/gpu".into());
            assert_eq!(judge(&expected, &node(&status)), missing, "{status}");
        }
    }
}
