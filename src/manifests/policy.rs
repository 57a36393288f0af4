//! What the API server lets through of what the account may ask.

mod cel;
mod events;
mod nodes;
mod yaml;

use super::Manifests;

/// The policies that hold the account to what the configuration needs, each with its binding.
pub(super) fn documents(manifests: &Manifests) -> Vec<String> {
    let mut documents = Vec::from(nodes::policy(manifests).documents());
    // Others in the account's pods may have Events of their own to tell.
    if manifests.form.has_own_account() && manifests.configuration.events {
        documents.extend(events::policy(&manifests.account).documents());
    }
    documents
}
