//! Admission policies: what the API server lets through of what the account may ask, and of what tenants may.
//!
//! `policy/` has a template of each policy, with its CEL: `nodes/own-account.yaml` for an account that is held to untaint's
//! work, `nodes/shared-account.yaml` for another, `events.yaml`, and `tenants/`. The expressions keep to what Kubernetes
//! 1.30 knows.

mod mark;
mod rules;
mod tenants;

use super::yaml::Values;
use super::{Manifests, RenderError};
use crate::events::CONTROLLER;

pub(super) use mark::role_rules;
pub use tenants::{Enforcement, Tenants};

/// Of an expression: `expressionSizeCodePointLimit` in github.com/google/cel-go/parser.
pub(super) const MOST_CHARACTERS: usize = 100_000;

/// The policies that hold the account to what the configuration needs, each with its binding, and those against pods
/// that slip past start-up taints, as far as they are asked for.
pub(super) fn documents(manifests: &Manifests) -> Result<Vec<String>, RenderError> {
    let mut documents = nodes(manifests)?.to_vec();
    // Others in the account's pods may have Events of their own to tell.
    if manifests.holds_account() && manifests.configuration.events {
        documents.extend(events(manifests)?);
    }
    documents.extend(tenants::documents(manifests)?);
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
    denying(template, values, manifests.account.objects())
}

fn events(manifests: &Manifests) -> Result<[String; 2], RenderError> {
    let template = include_str!("policy/events.yaml");
    let values = for_account(manifests).with("controller", CONTROLLER);
    denying(template, values, manifests.account.objects_for("events"))
}

/// What the policies for the account have in common.
fn for_account(manifests: &Manifests) -> Values {
    mark::values(manifests)
        .with_part("isAccount", include_str!("policy/is-account.yaml"))
        .with_part("hasNode", include_str!("policy/has-node.yaml"))
}

/// A policy with a binding that refuses.
fn denying(template: &str, values: Values, name: String) -> Result<[String; 2], RenderError> {
    let values = values.with("name", &name);
    let binding = values.fill(include_str!("policy/binding.yaml"));
    Ok([checked(values.fill(template), &name)?, binding])
}

/// The policy, if the server takes its expressions. They are blocks at the same depth.
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

/// In CEL. Whatever comes here from a configuration, keys and values of taints and labels and names of all kinds, has a form
/// without quotes and backslashes.
fn string(text: &str) -> String {
    format!("'{text}'")
}
