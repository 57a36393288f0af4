//! The mark: how the policies recognize the account after it is renamed.
//!
//! Kustomize, Flux and Helm rename accounts, roles and bindings, but not names in an expression. So a policy recognizes
//! the account by its written name, or by permissions that only its role grants. They allow nothing, because no server
//! has the API group, but the API server can check whether a user has them.

use std::collections::BTreeSet;

use super::rules;
use crate::config::Rule;
use crate::manifests::Manifests;
use crate::manifests::yaml::{Values, scalar};
use crate::text::sha256;

/// The values of the mark in the templates of policies.
pub(super) fn values(manifests: &Manifests) -> Values {
    manifests
        .values()
        .with("user", manifests.account.user())
        .with("mark", mark(manifests))
        .with("writtenAccount", written_account(manifests))
        .with("hash", hash(manifests))
}

/// The rules of the role that grant the mark.
pub(in crate::manifests) fn role_rules(manifests: &Manifests) -> String {
    let (account, hash) = (written_account(manifests), hash(manifests));
    let rules = || manifests.writing_rules();
    let removed: BTreeSet<_> = rules()
        .flat_map(Rule::taints)
        .map(|taint| taint.key)
        .collect();
    let put_back: BTreeSet<_> = rules()
        .filter_map(Rule::put_back)
        .map(|taint| taint.key)
        .collect();
    let published = rules().filter_map(|rule| rule.publish_condition.as_ref());
    let published: BTreeSet<_> = published.map(|condition| &condition.kind).collect();
    [
        grant(ABOUT_MARK, mark(manifests), "hold", [account]),
        grant(ABOUT_RULES, "rules", "follow", [hash]),
        grant("", "taints", "remove", removed),
        grant("", "taints", "add", put_back),
        grant("", "conditions", "publish", published),
    ]
    .concat()
}

fn grant(
    about: &str,
    resource: &str,
    verb: &str,
    names: impl IntoIterator<Item = impl AsRef<str>>,
) -> String {
    let names = names.into_iter();
    let names: Vec<_> = names
        .map(|name| format!("  - {}\n", scalar(name.as_ref())))
        .collect();
    if names.is_empty() {
        // Without names, the rule would grant all names.
        return String::new();
    }
    let names = names.concat();
    format!(
        "{about}- apiGroups: [untaint.dev]\n  resources: [{resource}]\n  resourceNames:\n{names}  verbs: [{verb}]\n"
    )
}

const ABOUT_MARK: &str = "\
# These permissions allow nothing, because no server has this API group. The admission policies recognize the account by
# them, even after kustomize, Flux or Helm has renamed it. Do not grant them to other accounts.
";

const ABOUT_RULES: &str = "\
# The policy uses its rules for this account if they have this hash. Otherwise, the account may change what follows.
";

/// The resource of the mark: a different one for accounts with other work with Nodes.
fn mark(manifests: &Manifests) -> &'static str {
    if manifests.holds_account() {
        "ownnode"
    } else {
        "owntaints"
    }
}

/// With a colon, no tool takes it for the name of an object and renames it.
fn written_account(manifests: &Manifests) -> String {
    let account = &manifests.account;
    format!("{}:{}", account.namespace, account.name)
}

/// Policies with the same hash permit the same.
fn hash(manifests: &Manifests) -> String {
    let (mark, uid) = (mark(manifests), manifests.check_node_uid);
    let rules = rules::in_cel(manifests);
    sha256(&format!("{mark} {uid} {rules}"))[..16].into()
}
