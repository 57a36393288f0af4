//! The policy that gives new Nodes their taints, as the program writes it and as kustomize renames it.

use std::fs;
use std::path::Path;

use tempfile::{NamedTempFile, tempdir};
use testkit::agent::write_configuration;
use testkit::cluster::{Cluster, shared};

use crate::render::{Objects, ROOT, written};

/// What the program writes for these rules, or the error.
fn with(rules: &str) -> Result<String, String> {
    let configuration = NamedTempFile::new().unwrap();
    write_configuration(configuration.path(), rules).unwrap();
    let file = configuration.path().to_str().unwrap();
    written(&["--only=policy", "--taint-new-nodes", "--config", file])
}

#[test]
fn a_taint_without_an_effect_and_a_configuration_without_taints_are_refused_with_the_remedy() {
    for (rules, expected) in [
        (
            "
- {name: a, taint: {key: example.com/a}, gates: []}
- {name: b, taint: {key: example.com/b, effect: NoSchedule}, gates: []}
- {name: c, taint: {key: example.com/c, value: x}, gates: []}
- {name: d, taint: {key: example.com/d}, gates: [], dryRun: true}
",
            "--taint-new-nodes cannot add a taint without an effect: set taint.effect in each rule that does not have it: a, c",
        ),
        (
            "- {name: a, taint: {key: example.com/a, effect: NoSchedule}, gates: [], dryRun: true}\n",
            "--taint-new-nodes has no taint to add: untaint would not remove the taint of a rule with dryRun; delete dryRun \
             from a rule, or leave the option out",
        ),
    ] {
        assert_eq!(with(rules).unwrap_err().trim_end(), expected);
    }
}

#[test]
fn the_policy_says_at_its_head_what_it_needs_and_how_it_is_stopped() {
    let rules = "- {name: a, taint: {key: example.com/a, effect: NoSchedule}, gates: []}\n";
    let yaml = with(rules).unwrap();
    let head = yaml
        .split("kind: MutatingAdmissionPolicy\n")
        .next()
        .unwrap();
    for text in [
        "Kubernetes 1.36 or newer",
        "kubectl delete mutatingadmissionpolicybinding untaint-new-nodes\n",
    ] {
        assert!(head.contains(text), "{head}");
    }
    assert!(yaml.contains("  policyName: untaint-new-nodes\n"), "{yaml}");
}

/// Kustomize does not know the field `policyName` of this binding.
#[tokio::test]
async fn with_the_configuration_in_the_documents_kustomize_renames_the_policy_in_its_binding() {
    let Some(cluster) = shared().await else {
        return;
    };
    let documents = fs::read_to_string(Path::new(ROOT).join("docs/manifests.md")).unwrap();
    let (_, names) = documents.split_once("# policy-names.yaml\n").unwrap();
    let (names, _) = names.split_once("```").unwrap();
    let rules = "- {name: a, taint: {key: example.com/a, effect: NoSchedule}, gates: []}\n";
    let yaml = with(rules).unwrap();
    for (fields, bound) in [
        ("", "untaint-new-nodes"),
        (
            "configurations: [policy-names.yaml]\n",
            "pre-untaint-new-nodes",
        ),
    ] {
        let objects = renamed(cluster, &yaml, names, fields).await;
        let policy = objects.one("MutatingAdmissionPolicy");
        assert_eq!(policy["metadata"]["name"], "pre-untaint-new-nodes");
        let binding = objects.one("MutatingAdmissionPolicyBinding");
        assert_eq!(binding["metadata"]["name"], "pre-untaint-new-nodes");
        assert_eq!(binding["spec"]["policyName"], bound);
        let validating = objects.one("ValidatingAdmissionPolicyBinding");
        assert_eq!(validating["spec"]["policyName"], "pre-untaint");
    }
}

/// With a prefix and these fields of a kustomization.
async fn renamed(cluster: &Cluster, yaml: &str, names: &str, fields: &str) -> Objects {
    let directory = tempdir().unwrap();
    let kustomization = format!("resources: [untaint.yaml]\nnamePrefix: pre-\n{fields}");
    for (name, text) in [
        ("untaint.yaml", yaml),
        ("policy-names.yaml", names),
        ("kustomization.yaml", &kustomization),
    ] {
        fs::write(directory.path().join(name), text).unwrap();
    }
    Objects::of(cluster, directory.path()).await
}
