//! `allocatable`: a resource in the status of the Node.

use k8s_openapi::apimachinery::pkg::api::resource;

use crate::config::Allocatable;
use crate::gate::Outcome;
use crate::node::view::NodeView;
use crate::quantity::Quantity;
use crate::text::excerpt;

pub(super) fn judge(expected: &Allocatable, node: &NodeView) -> Outcome {
    let resource = &expected.resource;
    let Some(resource::Quantity(quantity)) = node.allocatable.get(resource) else {
        return Outcome::Closed(format!("the Node has no allocatable {resource}"));
    };
    let seen = format!("allocatable {resource} is {}", excerpt(quantity));
    match shortfall(expected, Quantity::parse(quantity), node) {
        Some(why) => Outcome::Closed(format!("{seen}{why}")),
        None => Outcome::Open(seen),
    }
}

/// Why this quantity is not enough, as the end of a message.
fn shortfall(
    expected: &Allocatable,
    quantity: Option<Quantity>,
    node: &NodeView,
) -> Option<String> {
    let Some(quantity) = quantity else {
        return Some(", which is not a quantity".into());
    };
    if let Some(least) = &expected.at_least
        && Quantity::parse(least).is_none_or(|least| quantity < least)
    {
        return Some(format!(", less than {least}"));
    }
    if quantity <= Quantity::ZERO {
        return Some(String::new());
    }
    if !expected.equals_capacity {
        return None;
    }
    let Some(resource::Quantity(capacity)) = node.capacity.get(&expected.resource) else {
        return Some(", and the Node has no capacity of it".into());
    };
    (Quantity::parse(capacity) != Some(quantity))
        .then(|| format!(", and the capacity is {}", excerpt(capacity)))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    const GPU: &str = "nvidia.com/gpu";

    fn expected(at_least: Option<&str>, equals_capacity: bool) -> Allocatable {
        Allocatable {
            resource: GPU.into(),
            at_least: at_least.map(Into::into),
            equals_capacity,
        }
    }

    fn outcome(expected: &Allocatable, status: &Value) -> Outcome {
        let metadata = json!({"name": "node", "uid": "1", "resourceVersion": "1"});
        let node = json!({"metadata": metadata, "status": status});
        judge(expected, &serde_json::from_value(node).unwrap())
    }

    fn open(quantity: &str) -> Outcome {
        Outcome::Open(format!("allocatable {GPU} is {quantity}"))
    }

    fn closed(quantity: &str, why: &str) -> Outcome {
        Outcome::Closed(format!("allocatable {GPU} is {quantity}{why}"))
    }

    #[test]
    fn a_resource_is_there_if_its_quantity_is_above_zero() {
        let outcome_of = |quantity: &str| {
            let other = "nvidia.com/gpu.shared";
            let status = json!({"allocatable": {GPU: quantity, other: "7"}});
            outcome(&expected(None, false), &status)
        };
        for quantity in ["0", "0k", "0Ki", "0.0", "0e3", "-1", "-0", "+0m"] {
            assert_eq!(outcome_of(quantity), closed(quantity, ""));
        }
        for quantity in ["", "many", "1 GPU"] {
            let why = ", which is not a quantity";
            assert_eq!(outcome_of(quantity), closed(quantity, why));
        }
        for quantity in [
            "1", "8", "500m", "0.5", ".5", "1e3", "1E3", "10", "1E", "+2", "107374Ki",
        ] {
            assert_eq!(outcome_of(quantity), open(quantity));
        }
        for status in [
            json!({}),
            json!({"allocatable": null}),
            json!({"allocatable": {"nvidia.com/gpu.shared": "1"}, "capacity": {GPU: "1"}}),
        ] {
            let missing = Outcome::Closed(format!("the Node has no allocatable {GPU}"));
            assert_eq!(outcome(&expected(None, false), &status), missing);
            assert_eq!(outcome(&expected(Some("1"), true), &status), missing);
        }
    }

    /// k8s-device-plugin#125: seven of eight GPUs are there.
    #[test]
    fn a_quantity_is_compared_by_its_value_with_the_least_one() {
        for (least, enough, too_little) in [
            (
                "8",
                &["8", "9", "8000m", "1k", "8Ki"][..],
                &["7", "0", "-8", "7999m"][..],
            ),
            (
                "4Gi",
                &["4Gi", "4096Mi", "4294967296", "5e9"],
                &["4G", "4095Mi", "4294967295", "4294967295999m"],
            ),
            ("500m", &["500m", "0.5", "1"], &["499m", "0.4", "1u"]),
        ] {
            let expected = expected(Some(least), false);
            for quantity in enough {
                let status = json!({"allocatable": {GPU: quantity}});
                assert_eq!(outcome(&expected, &status), open(quantity), "{least}");
            }
            for quantity in too_little {
                let status = json!({"allocatable": {GPU: quantity}});
                let why = format!(", less than {least}");
                assert_eq!(outcome(&expected, &status), closed(quantity, &why));
            }
        }
    }

    #[test]
    fn a_quantity_that_must_be_the_capacity_is_compared_by_its_value() {
        for (quantity, capacity, why) in [
            ("8", json!("8"), None),
            ("4Gi", json!("4096Mi"), None),
            ("7", json!("8"), Some(", and the capacity is 8")),
            ("9", json!("8"), Some(", and the capacity is 8")),
            ("4G", json!("4Gi"), Some(", and the capacity is 4Gi")),
            ("8", json!(""), Some(", and the capacity is ")),
            ("0", json!("0"), Some("")),
            (
                "8",
                json!(null),
                Some(", and the Node has no capacity of it"),
            ),
        ] {
            let mut status = json!({"allocatable": {GPU: quantity}, "capacity": {"cpu": quantity}});
            if capacity.is_string() {
                status["capacity"][GPU] = capacity;
            }
            let seen = outcome(&expected(None, true), &status);
            assert_eq!(
                seen,
                why.map_or_else(|| open(quantity), |why| closed(quantity, why))
            );
        }
        let both = expected(Some("8"), true);
        let status =
            |quantity: &str| json!({"allocatable": {GPU: quantity}, "capacity": {GPU: quantity}});
        assert_eq!(outcome(&both, &status("8")), open("8"));
        assert_eq!(outcome(&both, &status("7")), closed("7", ", less than 8"));
    }
}
