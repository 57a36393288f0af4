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
    let words = [&condition.reason, &condition.message];
    let words = words.map(|word| word.as_deref().unwrap_or_default());
    let words = words.iter().filter(|word| !word.is_empty());
    let why: String = words.map(|word| format!(": {word}")).collect();
    Outcome::Closed(format!("{seen}, not {status}{}", excerpt(&why)))
}
