//! Admission policies: what the API server allows of the requests of untaint's account and of tenants, and the taints that
//! it gives to new Nodes.
//!
//! `policy/` has one template for each policy, with its CEL: `nodes/own-account.yaml` for an account that is held to
//! untaint's work, `nodes/shared-account.yaml` for an account with other work, `events.yaml`, `tenants/` and `new-nodes/`.
//! Except for `new-nodes/`, the expressions use only what Kubernetes 1.30 supports.

mod mark;
mod new_nodes;
mod rules;
mod tenants;

use super::yaml::Values;
use super::{Manifests, RenderError};
use crate::REPORTING_CONTROLLER;

pub(super) use mark::role_rules;
pub use new_nodes::NewNodes;
pub(super) use new_nodes::warnings;
pub use tenants::{Enforcement, Tenants};

/// The longest expression that the API server accepts: `expressionSizeCodePointLimit` in
/// github.com/google/cel-go/parser.
pub(super) const MOST_CHARACTERS: usize = 100_000;

/// The policies for the account, and the optional ones for tenants and for new Nodes, each with its bindings.
pub(super) fn documents(manifests: &Manifests) -> Result<Vec<String>, RenderError> {
    let mut documents = nodes(manifests)?.to_vec();
    // Other programs in the account's pods may write their own Events.
    if manifests.holds_account() && manifests.configuration.events {
        documents.extend(events(manifests)?);
    }
    documents.extend(tenants::documents(manifests)?);
    documents.extend(new_nodes::documents(manifests)?);
    Ok(documents)
}

fn nodes(manifests: &Manifests) -> Result<[String; 2], RenderError> {
    let template = if manifests.holds_account() {
        include_str!("policy/nodes/own-account.yaml")
    } else {
        include_str!("policy/nodes/shared-account.yaml")
    };
    let own_uid = if manifests.check_node_uid {
        include_str!("policy/nodes/own-uid.yaml")
    } else {
        ""
    };
    let values = for_account(manifests)
        .with("rules", rules::in_cel(manifests))
        .with_part("variables", include_str!("policy/nodes/variables.yaml"))
        .with("ownUid", own_uid)
        .with_part("ownNode", include_str!("policy/nodes/own-node.yaml"))
        .with_part("othersStay", include_str!("policy/nodes/others-stay.yaml"));
    denying(template, values, &manifests.account.objects())
}

fn events(manifests: &Manifests) -> Result<[String; 2], RenderError> {
    let template = include_str!("policy/events.yaml");
    let values = for_account(manifests).with("controller", REPORTING_CONTROLLER);
    denying(template, values, &manifests.account.objects_for("events"))
}

/// The values that both policies for the account have.
fn for_account(manifests: &Manifests) -> Values {
    mark::values(manifests)
        .with_part("isAccount", include_str!("policy/is-account.yaml"))
        .with_part("hasNode", include_str!("policy/has-node.yaml"))
}

/// A policy and its binding, which refuses requests.
fn denying(template: &str, values: Values, name: &str) -> Result<[String; 2], RenderError> {
    let values = values.with("name", name);
    let binding = values.fill(include_str!("policy/binding.yaml"));
    Ok([checked(values.fill(template), name)?, binding])
}

/// The policy, if none of its expressions is too long. They are literal blocks of the same indentation.
fn checked(policy: String, name: &str) -> Result<String, RenderError> {
    let expressions = policy.split(" expression: |-\n").skip(1);
    let lengths = expressions.map(|expression| {
        let lines = expression
            .lines()
            .map_while(|line| line.strip_prefix("      "));
        let lengths = lines.map(|line| line.chars().count() + 1);
        lengths.sum::<usize>().saturating_sub(1)
    });
    match lengths.max() {
        Some(length) if length > MOST_CHARACTERS => Err(RenderError::TooLong {
            policy: name.into(),
            length,
        }),
        _ => Ok(policy),
    }
}

/// A string in CEL. Names, and keys and values of taints and labels, contain no quotes and no backslashes.
fn string(text: &str) -> String {
    format!("'{text}'")
}
