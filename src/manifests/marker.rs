//! How the policies know the account, whatever it is called by the time it is applied.
//!
//! Kustomize, Flux and Helm rename accounts, roles and bindings, but not what stands in an expression. So a policy goes by
//! the name that was written, or by permissions that its role alone grants. Nobody can use them for anything: there is no
//! such API group. The API server does not ask for that before it answers whether a user has them.

use std::collections::BTreeSet;
use std::slice;

use super::policy::data;
use super::text::{indent, scalar};
use super::{Account, Manifests};
use crate::text::sha256;

const GROUP: &str = "untaint.dev";
/// Never granted. Whoever may do this may do everything, and is not held for it: an administrator, say.
const NEVER: &str = "never";

/// The permissions that tell the policies whose account it is.
pub(super) struct Marker {
    account: Account,
    /// The account as it was written, which the marker keeps. With a colon no object has this name, so nothing renames it.
    written: String,
    /// Different ones for what holds an account and for what looks at taints alone.
    resource: &'static str,
    /// A hash of what the policy permits: what is equal permits the same.
    rules: String,
    taints: Vec<String>,
    put_back: Vec<String>,
    conditions: Vec<String>,
}

impl Marker {
    pub(super) fn of(manifests: &Manifests) -> Self {
        let rules: Vec<_> = manifests.writing_rules().collect();
        let resource = if manifests.holds_account() {
            "ownnode"
        } else {
            "owntaints"
        };
        let uid = manifests.check_node_uid;
        let hash = sha256(&format!("{resource} {uid} {}", data::rules(&rules)));
        let account = manifests.account.clone();
        let sorted = |names: BTreeSet<&str>| names.into_iter().map(Into::into).collect();
        let put_back = rules.iter().filter(|rule| rule.retaint.is_some());
        let published = rules.iter().filter_map(|rule| {
            let condition = rule.publish_condition.as_ref()?;
            Some(condition.kind.as_str())
        });
        Self {
            written: format!("{}:{}", account.namespace, account.name),
            account,
            resource,
            rules: hash[..16].into(),
            taints: sorted(rules.iter().map(|rule| rule.taint.key.as_str()).collect()),
            put_back: sorted(put_back.map(|rule| rule.taint.key.as_str()).collect()),
            conditions: sorted(published.collect()),
        }
    }

    /// Of the role, what grants them.
    pub(super) fn role(&self) -> String {
        let mut rules = format!(
            "{ABOUT}{}{ABOUT_RULES}{}",
            grant(self.resource, slice::from_ref(&self.written), "hold"),
            grant("rules", slice::from_ref(&self.rules), "follow"),
        );
        for (resource, names, verb) in [
            ("taints", &self.taints, "remove"),
            ("taints", &self.put_back, "add"),
            ("conditions", &self.conditions, "publish"),
        ] {
            if !names.is_empty() {
                rules.push_str(&grant(resource, names, verb));
            }
        }
        rules
    }

    /// In CEL: the request is the account's.
    pub(super) fn is_account(&self) -> String {
        format!(
            "{} ||\nrequest.userInfo.username.startsWith('system:serviceaccount:') &&\n{} &&\n!{}",
            self.is_named(),
            self.holds("authorizer"),
            self.holds_everything("authorizer"),
        )
    }

    /// In CEL: the rules of this policy are the account's. They are not those of an account that another installation, made
    /// for an account of the same name, has renamed, nor those of a role that has changed and the policy has not.
    pub(super) fn follows_rules(&self) -> String {
        let follows = allowed("authorizer", "rules", &quoted(&self.rules), "follow");
        format!(
            "{follows} ||\n{} && !{}",
            self.is_named(),
            self.holds("authorizer")
        )
    }

    /// In CEL: a ServiceAccount is this one, for all that its permissions say.
    pub(super) fn is_held(&self, namespace: &str, name: &str) -> String {
        let whose = format!("authorizer.serviceAccount({namespace}, {name})");
        format!(
            "{} &&\n!{}",
            self.holds(&whose),
            self.holds_everything(&whose)
        )
    }

    fn is_named(&self) -> String {
        format!(
            "request.userInfo.username == {}",
            quoted(&self.account.user())
        )
    }

    fn holds(&self, whose: &str) -> String {
        allowed(whose, self.resource, &quoted(&self.written), "hold")
    }

    fn holds_everything(&self, whose: &str) -> String {
        allowed(whose, self.resource, &quoted(&self.written), NEVER)
    }
}

const ABOUT: &str = "# Not for untaint: there is no such group. By these permissions the admission policies know the account when
# kustomize, Flux or Helm has renamed it. Nobody else is to have them.
";

const ABOUT_RULES: &str = "# Which rules a policy must have to judge the account by them, and what the account may change as long as the policy has
# others.
";

/// A string in CEL.
fn quoted(text: &str) -> String {
    format!("'{text}'")
}

fn grant(resource: &str, names: &[String], verb: &str) -> String {
    let names: Vec<_> = names
        .iter()
        .map(|name| format!("- {}\n", scalar(name)))
        .collect();
    format!(
        "- apiGroups: [{GROUP}]\n  resources: [{resource}]\n  resourceNames:\n{}  verbs: [{verb}]\n",
        indent(&names.concat(), 2)
    )
}

/// In CEL: a permission is granted. The server evaluates two such checks in one expression, and no third: each costs 350,000
/// of the 1,000,000 units that there are.
pub(super) fn allowed(whose: &str, resource: &str, name: &str, verb: &str) -> String {
    format!(
        "{whose}.group('{GROUP}').resource('{resource}').name({name}).check('{verb}').allowed()"
    )
}
