//! The nodes on which the pods run.

use std::collections::BTreeMap;

use crate::manifests::yaml::{Values, fields};
use crate::manifests::{Manifests, RenderError};

/// The fields of the pods' `nodeSelector`: those of the user, and those that all rules share.
pub(super) fn selector(manifests: &Manifests) -> Result<String, RenderError> {
    let shared = shared(manifests);
    for (key, value) in &manifests.additions.node_selector {
        if let Some(of_rules) = shared.get(key)
            && of_rules != value
        {
            return Err(RenderError::OtherNodes {
                key: key.clone(),
                value: value.clone(),
                of_rules: of_rules.clone(),
            });
        }
    }
    let own = &manifests.additions.node_selector;
    let is_new = |key: &String| key != OS && !own.contains_key(key);
    let derived = shared.into_iter().filter(|(key, _)| is_new(key));
    let derived: BTreeMap<_, _> = derived.collect();
    let about = if derived.is_empty() { "" } else { ABOUT };
    Ok(format!("{}{about}{}", fields(own), fields(&derived)))
}

/// That of the user, or the one that keeps the pods off Nodes that are not machines.
pub(super) fn affinity(manifests: &Manifests) -> String {
    match &manifests.additions.affinity {
        Some(affinity) => format!("affinity: {affinity}\n"),
        None => Values::default().fill(include_str!("affinity.yaml")),
    }
}

/// The template has it.
const OS: &str = "kubernetes.io/os";

const ABOUT: &str = "\
# All rules have this in nodeSelector, so untaint has nothing to do on other nodes.
";

/// What all rules have in `nodeSelector`. Nothing with `retaint`: it removes the taint that it has put back also after
/// the labels of the Node have changed, so the agent must stay there. Nothing for the pods of another program.
fn shared(manifests: &Manifests) -> BTreeMap<String, String> {
    let rules = &manifests.configuration.rules;
    if !manifests.form.has_own_account() || rules.iter().any(|rule| rule.retaint.is_some()) {
        return BTreeMap::new();
    }
    let mut selectors = rules.iter().map(|rule| &rule.node_selector);
    let mut shared = selectors.next().cloned().unwrap_or_default();
    for selector in selectors {
        shared.retain(|key, value| selector.get(key) == Some(value));
    }
    shared
}
