//! The policy that gives new Nodes their start-up taints. It needs Kubernetes 1.36 (`MutatingAdmissionPolicy` in
//! k8s.io/apiserver/pkg/features).

use std::collections::BTreeMap;

use clap::ValueEnum;

use super::{checked, string};
use crate::config::Rule;
use crate::manifests::{Manifests, RenderError};
use crate::taint::Effect;

/// Which new Nodes get the taints of the rules that select them. The comments below are in `--help`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "verbatim")]
pub enum NewNodes {
    /// All but those of Karpenter, whose NodePools must list the taints.
    ExceptKarpenter,
    /// Those of Karpenter too.
    All,
}

/// The policy and its binding, if they are requested.
pub(super) fn documents(manifests: &Manifests) -> Result<Vec<String>, RenderError> {
    let Some(nodes) = manifests.taint_new_nodes else {
        return Ok(Vec::new());
    };
    let not_karpenter = match nodes {
        NewNodes::ExceptKarpenter => include_str!("new-nodes/not-karpenter.yaml"),
        NewNodes::All => "",
    };
    let name = manifests.account.objects_for("new-nodes");
    let values = manifests
        .values()
        .with("name", &name)
        .with("notKarpenter", not_karpenter)
        .with("rules", in_cel(manifests)?);
    Ok(vec![
        checked(values.fill(include_str!("new-nodes/policy.yaml")), &name)?,
        values.fill(include_str!("new-nodes/binding.yaml")),
    ])
}

/// The taints as data in CEL: a line for each key and effect, with the rules that name them.
fn in_cel(manifests: &Manifests) -> Result<String, RenderError> {
    let mut same: BTreeMap<(&str, &str), Vec<String>> = BTreeMap::new();
    let mut without_effect = Vec::new();
    for rule in manifests.writing_rules() {
        match rule.taint.effect {
            Some(effect) => same
                .entry((&rule.taint.key, effect.as_str()))
                .or_default()
                .push(entry(rule, effect)),
            None => without_effect.push(rule.name.as_str()),
        }
    }
    if !without_effect.is_empty() {
        return Err(RenderError::NoEffect {
            rules: without_effect.join(", "),
        });
    }
    if same.is_empty() {
        return Err(RenderError::NoNewTaint);
    }
    let lines = same.values().map(|rules| format!("[{}]", rules.join(", ")));
    Ok(lines.collect::<Vec<_>>().join(",\n"))
}

/// A map of lists of strings, because CEL in Kubernetes has no maps of mixed types.
fn entry(rule: &Rule, effect: Effect) -> String {
    let value = rule.taint.value.as_deref();
    let mut fields = vec![
        format!("'key': [{}]", string(&rule.taint.key)),
        format!("'effect': [{}]", string(effect.as_str())),
    ];
    fields.extend(
        value
            .filter(|value| !value.is_empty())
            .map(|value| format!("'value': [{}]", string(value))),
    );
    // Labels contain no `=`.
    let labels = rule.node_selector.iter();
    let labels: Vec<_> = labels
        .map(|(key, value)| string(&format!("{key}={value}")))
        .collect();
    if !labels.is_empty() {
        fields.push(format!("'nodeSelector': [{}]", labels.join(", ")));
    }
    format!("{{{}}}", fields.join(", "))
}
