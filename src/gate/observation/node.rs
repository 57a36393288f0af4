//! `allocatable` and `nodeCondition`: the status of the own Node. Pure.

use crate::config::{Allocatable, NodeCondition};
use crate::gate::Outcome;
use crate::node::view::NodeView;
use crate::text::excerpt;

pub(super) fn allocatable(expected: &Allocatable, node: &NodeView) -> Outcome {
    let resource = &expected.resource;
    match node
        .allocatable
        .get(resource)
        .map(|quantity| quantity.0.as_str())
    {
        None => Outcome::Closed(format!("the Node has no allocatable {resource}")),
        Some(quantity) if is_zero(quantity) => {
            Outcome::Closed(format!("allocatable {resource} is {quantity}"))
        }
        Some(quantity) => Outcome::Open(format!("allocatable {resource} is {quantity}")),
    }
}

/// Whether a quantity (apimachinery `resource.Quantity`) is nothing: no digit of its number is other than 0.
fn is_zero(quantity: &str) -> bool {
    let number = quantity
        .split(|c: char| c.is_ascii_alphabetic())
        .next()
        .unwrap_or_default();
    !number.contains(|c: char| ('1'..='9').contains(&c))
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
    let reason = condition.reason.as_deref().unwrap_or_default();
    let seen = format!("condition {kind} is {}", excerpt(&condition.status));
    if condition.status == *status {
        return Outcome::Open(seen);
    }
    let message = condition.message.as_deref().unwrap_or_default();
    Outcome::Closed(format!(
        "{seen}, not {status}: {}",
        excerpt(&format!("{reason}: {message}"))
    ))
}
