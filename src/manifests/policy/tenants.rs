//! Policies against pods that bypass start-up taints: by a toleration, or by `nodeName`.

mod taints;

use std::collections::BTreeSet;

use clap::ValueEnum;

use super::{checked, mark, string};
use crate::manifests::yaml::{Values, scalar};
use crate::manifests::{Account, Manifests, RenderError};

/// The options of the policies for pods of tenants.
#[derive(Debug, Clone, Default)]
pub struct Tenants {
    /// Pods may not tolerate a configured taint.
    pub tolerations: Option<Enforcement>,
    /// Pods may not be created with a `nodeName`.
    pub node_names: Option<Enforcement>,
    /// Besides kube-system and untaint's own namespace.
    pub exempt_namespaces: BTreeSet<String>,
    pub exempt_accounts: BTreeSet<Account>,
}

/// What happens to a pod that a policy is against. A user who creates a template of such pods is warned in any case. The
/// comments below are in `--help`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "verbatim")]
pub enum Enforcement {
    /// Refuse such pods.
    Deny,
    /// Warn whoever creates them, and add it to the audit log.
    Warn,
}

/// The requested policies, each with its bindings.
pub(super) fn documents(manifests: &Manifests) -> Result<Vec<String>, RenderError> {
    let tenants = &manifests.tenants;
    let taints = match tenants.tolerations {
        Some(_) => taints::in_cel(manifests)?,
        None => String::new(),
    };
    let common = values(manifests).with("taints", taints);
    let mut documents = Vec::new();
    for (purpose, enforcement, policy, operations) in [
        (
            "tolerations",
            tenants.tolerations,
            include_str!("tenants/tolerations.yaml"),
            // Tolerations can be added to an existing pod.
            "CREATE, UPDATE",
        ),
        (
            "node-names",
            tenants.node_names,
            include_str!("tenants/node-names.yaml"),
            // An existing pod has its Node.
            "CREATE",
        ),
    ] {
        let Some(enforcement) = enforcement else {
            continue;
        };
        let name = manifests.account.objects_for(purpose);
        let values = common.clone().with("name", &name);
        let values = values.with_part("remedy", include_str!("tenants/remedy.yaml"));
        let of_templates = manifests
            .account
            .objects_for(&format!("{purpose}-templates"));
        let binding = |name: &str, actions: &str, rules: &str, operations: &str| {
            let values = values.clone().with("bindingName", name);
            let values = values.with("actions", actions).with("podRules", rules);
            let values = values.with("operations", operations);
            values.fill(include_str!("tenants/binding.yaml"))
        };
        documents.extend([
            checked(values.fill(policy), &name)?,
            binding(&name, enforcement.actions(), "resourceRules", operations),
            binding(
                &of_templates,
                include_str!("tenants/actions/warn-of-templates.yaml"),
                "excludeResourceRules",
                "\"*\"",
            ),
        ]);
    }
    Ok(documents)
}

impl Enforcement {
    fn actions(self) -> &'static str {
        match self {
            Self::Deny => include_str!("tenants/actions/deny.yaml"),
            Self::Warn => include_str!("tenants/actions/warn.yaml"),
        }
    }
}

/// The values that both policies have.
fn values(manifests: &Manifests) -> Values {
    let tenants = &manifests.tenants;
    let own = [manifests.account.namespace.as_str(), "kube-system"];
    let namespaces = tenants.exempt_namespaces.iter().map(String::as_str);
    let namespaces: BTreeSet<_> = namespaces.chain(own).collect();
    let namespaces: Vec<_> = namespaces.into_iter().map(scalar).collect();
    let accounts = tenants.exempt_accounts.iter();
    let accounts =
        accounts.map(|Account { namespace, name }| string(&format!("{namespace}:{name}")));
    mark::values(manifests)
        .with("exemptNamespaces", namespaces.join(", "))
        .with("exemptAccounts", accounts.collect::<Vec<_>>().join(", "))
        .with(
            "podsAndTemplates",
            include_str!("tenants/pods-and-templates.yaml"),
        )
        .with("notAKubelet", include_str!("tenants/not-a-kubelet.yaml"))
        .with_part("pod", include_str!("tenants/pod.yaml"))
}
