//! What the API server lets through of what the account may ask, and of what others may.

mod cel;
mod changes;
pub(super) mod data;
mod events;
mod managed_fields;
mod nodes;
mod tenants;
mod yaml;

use super::{Manifests, RenderError};

pub use tenants::{Enforcement, Tenants};
pub(super) use yaml::MOST_CHARACTERS;

/// The policies that hold the account to what the configuration needs, each with its binding, and those against pods
/// that slip past start-up taints, as far as they are asked for.
pub(super) fn documents(manifests: &Manifests) -> Result<Vec<String>, RenderError> {
    let mut documents = Vec::from(nodes::policy(manifests).checked()?.documents());
    // Others in the account's pods may have Events of their own to tell.
    if manifests.holds_account() && manifests.configuration.events {
        documents.extend(events::policy(manifests).documents());
    }
    documents.extend(tenants::documents(manifests)?);
    Ok(documents)
}
