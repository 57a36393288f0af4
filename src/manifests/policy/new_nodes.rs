//! The policy that gives new Nodes their start-up taints. It needs Kubernetes 1.36 (`MutatingAdmissionPolicy` in
//! k8s.io/apiserver/pkg/features).

use std::collections::BTreeMap;

use clap::ValueEnum;

use super::checked;
use super::rules::{fields, labels, one};
use crate::config::Rule;
use crate::manifests::{Form, Manifests, RenderError};
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

/// Why new Nodes probably do not get the taints that the user expects, each with the remedy.
pub(in crate::manifests) fn warnings(manifests: &Manifests) -> Vec<String> {
    let Some(nodes) = manifests.taint_new_nodes else {
        return Vec::new();
    };
    let is_around = manifests.form != Form::Daemonset;
    let doubts = manifests.writing_rules().filter_map(|rule| {
        let doubt = if is_around && rule.node_selector.is_empty() {
            "--taint-new-nodes also taints new Nodes that the DaemonSet around untaint does not select: set nodeSelector in the \
             rule, unless the DaemonSet selects all Nodes"
                .to_owned()
        } else {
            let why = why_not_tainted(rule, nodes)?;
            format!("--taint-new-nodes gives new Nodes no taint of this rule, because {why}")
        };
        Some(format!("rule {}: {doubt}", rule.name))
    });
    doubts.collect()
}

/// Which label in the rule's `nodeSelector` new Nodes do not have yet, or have only if they get no taints, and the remedy.
fn why_not_tainted(rule: &Rule, nodes: NewNodes) -> Option<String> {
    let mut selected = rule.node_selector.iter();
    if let Some((label, value)) = selected.find(|(label, value)| is_elsewhere(label, value)) {
        return Some(format!(
            "untaint does not run on Nodes with {label}: {value}: select other Nodes"
        ));
    }
    let mut labels = rule.node_selector.keys();
    // The groups of Karpenter itself and of its providers for AWS and Azure (`Group` in pkg/apis of each).
    let of_karpenter = |label: &&String| {
        [
            "karpenter.sh/",
            "karpenter.k8s.aws/",
            "karpenter.azure.com/",
        ]
        .iter()
        .any(|group| label.starts_with(group))
    };
    if nodes == NewNodes::ExceptKarpenter
        && let Some(label) = labels.clone().find(of_karpenter)
    {
        return Some(format!(
            "{label} is a label of Karpenter's Nodes, which get no taints: list the taint as startupTaints in the NodePool, or \
             use --taint-new-nodes=All"
        ));
    }
    let label = labels.find(|label| comes_later(label))?;
    Some(format!(
        "a Node usually has no label {label} when its kubelet creates it: select the Nodes by a label in the kubelet's \
         --node-labels"
    ))
}

/// Whether the policy and the `DaemonSet` leave out the Nodes with this label.
fn is_elsewhere(label: &str, value: &str) -> bool {
    match label {
        "kubernetes.io/os" => value != "linux",
        "eks.amazonaws.com/compute-type" => value == "fargate",
        "type" => value == "virtual-kubelet",
        _ => false,
    }
}

/// Whether a kubelet may not set this label (`getForbiddenLabels` in
/// k8s.io/kubernetes/plugin/pkg/admission/noderestriction), or other programs usually set it: the cloud controller
/// manager, Node Feature Discovery, the GPU operator, kata-deploy, or a CSI driver.
fn comes_later(label: &str) -> bool {
    const LATER: [&str; 4] = ["kubernetes.io", "k8s.io", "nvidia.com", "katacontainers.io"];
    let Some((domain, name)) = label.split_once('/') else {
        return false;
    };
    let is_in = |parent: &str| {
        let child = domain.strip_suffix(parent);
        child.is_some_and(|child| child.is_empty() || child.ends_with('.'))
    };
    match (domain, name) {
        ("kubernetes.io" | "beta.kubernetes.io", "os" | "arch") | ("kubernetes.io", "hostname") => {
            false
        }
        ("node.kubernetes.io", "instance-type") | ("feature.node.kubernetes.io", _) => true,
        _ if domain.starts_with("topology.") => true,
        _ if is_in("kubelet.kubernetes.io") || is_in("node.kubernetes.io") => false,
        _ => LATER.into_iter().any(is_in),
    }
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

/// The taint that the `rule` gives to new Nodes.
fn entry(rule: &Rule, effect: Effect) -> String {
    let value = rule.taint.value.as_deref();
    fields(&[
        ("key", one(Some(&rule.taint.key))),
        ("effect", one(Some(effect.as_str()))),
        ("value", one(value.filter(|value| !value.is_empty()))),
        ("nodeSelector", labels(rule)),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_that_a_kubelet_may_not_set_or_usually_does_not_set_come_later() {
        for label in [
            "pool",
            "example.com/pool",
            "eks.amazonaws.com/nodegroup",
            "notkubernetes.io/a",
            "notnvidia.com/a",
            "example.com/topology.zone",
            "topology/zone",
            "kubernetes.io/os",
            "beta.kubernetes.io/arch",
            "kubernetes.io/hostname",
            "node.kubernetes.io/pool",
            "x.node.kubernetes.io/pool",
            "kubelet.kubernetes.io/pool",
        ] {
            assert!(!comes_later(label), "{label}");
        }
        for label in [
            "node-role.kubernetes.io/worker",
            "node-restriction.kubernetes.io/pool",
            "topology.kubernetes.io/zone",
            "failure-domain.beta.kubernetes.io/zone",
            "node.kubernetes.io/instance-type",
            "beta.kubernetes.io/instance-type",
            "feature.node.kubernetes.io/pci-10de.present",
            "kubernetes.io/role",
            "k8s.io/a",
            "a.k8s.io/a",
            "nvidia.com/gpu.present",
            "network.nvidia.com/operator",
            "katacontainers.io/kata-runtime",
            "topology.ebs.csi.aws.com/zone",
            "topology.gke.io/zone",
        ] {
            assert!(comes_later(label), "{label}");
        }
    }

    /// The expressions for the same Nodes stand in two templates, and in [`is_elsewhere`].
    #[test]
    fn the_nodes_without_untaint_are_those_that_the_daemon_set_does_not_select() {
        let of_pods = concat!(
            include_str!("../workload/nodes.yaml"),
            include_str!("../workload/affinity.yaml")
        );
        let of_policy = include_str!("new-nodes/policy.yaml");
        let mut keys: Vec<_> = of_pods.split("- key: ").skip(1).collect();
        let selector = of_pods.split("nodeSelector:\n  ").nth(1).unwrap();
        keys.extend(selector.lines().next());
        for key in keys {
            let (key, rest) = key.split_once([':', '\n']).unwrap();
            let in_policy = |comparison: &str| {
                let line = format!("labels[?'{key}'].orValue('') {comparison}");
                assert!(of_policy.contains(&line), "{line}");
            };
            if let Some((_, values)) = rest.split_once("operator: NotIn\n          values: [") {
                for value in values.split(']').next().unwrap().split(", ") {
                    in_policy(&format!("!= '{value}'"));
                    assert!(is_elsewhere(key, value), "{key} {value}");
                }
            } else {
                let value = rest.trim();
                in_policy(&format!("== '{value}'"));
                assert!(!is_elsewhere(key, value) && is_elsewhere(key, ""), "{key}");
            }
        }
        assert_eq!(of_policy.matches("labels[?").count(), 3);
    }
}
