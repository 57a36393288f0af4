//! The tolerations of the pods.

use crate::config::Rule;
use crate::manifests::Manifests;
use crate::manifests::yaml::{Values, scalar};
use crate::taint::TaintMatcher;

/// The `tolerations` of a pod.
pub(super) fn of_pods(manifests: &Manifests) -> String {
    if !manifests.exact_tolerations {
        return include_str!("all-tolerations.yaml").into();
    }
    let rules = manifests.configuration.rules.iter();
    let of_rules: String = rules
        .flat_map(Rule::taints)
        .map(|taint| of_taint(&taint))
        .collect();
    let values = Values::default().with("ofRules", of_rules);
    values.fill(include_str!("exact-tolerations.yaml"))
}

fn of_taint(taint: &TaintMatcher) -> String {
    let TaintMatcher { key, value, effect } = taint;
    let value = match value.as_deref() {
        // The server drops an empty `value`, so each `kubectl apply` would add it again.
        Some("") => "Equal".into(),
        Some(value) => format!("Equal\n  value: {}", scalar(value)),
        None => "Exists".into(),
    };
    let effect = effect.map(|effect| format!("  effect: {}\n", effect.as_str()));
    format!(
        "- key: {}\n  operator: {value}\n{}",
        scalar(key),
        effect.unwrap_or_default()
    )
}
