//! The policy that gives new Nodes their taints, as the program writes it and as kustomize renames it.

use std::fs;
use std::path::Path;
use std::process::Command;

use tempfile::{NamedTempFile, tempdir};
use testkit::agent::write_configuration;
use testkit::cluster::{Cluster, fresh, shared};

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
        "kubectl delete mutatingadmissionpolicybinding --selector app.kubernetes.io/instance=untaint\n",
    ] {
        assert!(head.contains(text), "{head}");
    }
    assert!(yaml.contains("  policyName: untaint-new-nodes\n"), "{yaml}");
}

#[test]
fn a_rule_for_nodes_with_a_label_that_new_nodes_do_not_have_yet_has_a_warning() {
    let late = "topology.kubernetes.io/zone";
    let expected = "warning: rule a: --taint-new-nodes gives new Nodes no taint of this rule, because a Node usually has no \
                    label topology.kubernetes.io/zone when its kubelet creates it: select the Nodes by a label in the \
                    kubelet's --node-labels\n";
    for (label, more, expected) in [
        (late, &["--taint-new-nodes"][..], expected),
        (late, &["--taint-new-nodes", "--only=policy"], expected),
        (late, &[], ""),
        ("example.com/pool", &["--taint-new-nodes"], ""),
    ] {
        assert_eq!(said(label, more), expected, "{label} {more:?}");
    }
}

#[test]
fn a_rule_for_nodes_of_karpenter_has_a_warning_unless_these_nodes_get_the_taints() {
    for label in [
        "karpenter.sh/nodepool",
        "karpenter.sh/capacity-type",
        "karpenter.k8s.aws/instance-category",
        "karpenter.azure.com/sku-name",
    ] {
        let expected = format!(
            "warning: rule a: --taint-new-nodes gives new Nodes no taint of this rule, because {label} is a label of \
             Karpenter's Nodes, which get no taints: list the taint as startupTaints in the NodePool, or use \
             --taint-new-nodes=All\n"
        );
        assert_eq!(said(label, &["--taint-new-nodes"]), expected);
        assert_eq!(said(label, &["--taint-new-nodes=All"]), "");
        assert_eq!(said(label, &[]), "");
    }
    let other = said("karpenter.example.com/nodepool", &["--taint-new-nodes"]);
    assert_eq!(other, "");
}

#[test]
fn a_rule_for_nodes_on_which_untaint_does_not_run_has_a_warning() {
    for (label, value, is_elsewhere) in [
        ("kubernetes.io/os", "windows", true),
        ("kubernetes.io/os", "linux", false),
        ("eks.amazonaws.com/compute-type", "fargate", true),
        ("eks.amazonaws.com/compute-type", "auto", false),
        ("type", "virtual-kubelet", true),
        ("type", "worker", false),
    ] {
        let expected = format!(
            "warning: rule a: --taint-new-nodes gives new Nodes no taint of this rule, because untaint does not run on Nodes \
             with {label}: {value}: select other Nodes\n"
        );
        let expected = if is_elsewhere { &expected } else { "" };
        for option in ["--taint-new-nodes", "--taint-new-nodes=All"] {
            assert_eq!(said_of(label, value, &[option]), expected);
        }
        assert_eq!(said_of(label, value, &[]), "");
    }
}

#[test]
fn with_a_form_in_another_daemon_set_a_rule_for_all_nodes_has_a_warning() {
    let expected = "warning: rule a: --taint-new-nodes also taints new Nodes that the DaemonSet around untaint does not \
                    select: set nodeSelector in the rule, unless the DaemonSet selects all Nodes\n";
    for form in ["sidecar", "init-container", "post-start"] {
        let form = format!("--form={form}");
        let arguments = [
            &form,
            "--service-account=cni",
            "--namespace=kube-system",
            "--only=policy",
        ];
        let with = [&arguments[..], &["--taint-new-nodes"]].concat();
        assert_eq!(said("", &with), expected);
        assert_eq!(said("example.com/pool", &with), "");
        assert_eq!(said("", &arguments), "");
    }
    assert_eq!(said("", &["--taint-new-nodes"]), "");
}

#[test]
fn an_output_without_the_policy_has_a_warning_that_new_nodes_get_no_taints() {
    let patch = [
        "--form=sidecar",
        "--service-account=cni",
        "--namespace=kube-system",
        "--patch=cni",
    ];
    let only = "warning: --taint-new-nodes does nothing, because --only without policy writes none: add policy to --only\n";
    let of_patch = "warning: --taint-new-nodes does nothing, because --patch writes no policy: run the command again with --only=policy \
         instead of --patch\n";
    for (arguments, expected) in [
        (&["--only=workload"][..], only),
        (&["--only=rbac,config"], only),
        (&["--only=policy,rbac"], ""),
        (&patch, of_patch),
    ] {
        let with = [arguments, &["--taint-new-nodes"]].concat();
        assert_eq!(said("example.com/pool", &with), expected);
        assert_eq!(said("example.com/pool", arguments), "");
    }
}

/// The warnings about a rule for the Nodes with this label, or for all if it is empty.
fn said(label: &str, more: &[&str]) -> String {
    said_of(label, "a", more)
}

/// The same with this value of the label.
fn said_of(label: &str, value: &str, more: &[&str]) -> String {
    let configuration = NamedTempFile::new().unwrap();
    let selector = match label {
        "" => String::new(),
        label => format!("nodeSelector: {{{label}: {value}}}, "),
    };
    let rule =
        format!("- {{name: a, taint: {{key: a, effect: NoSchedule}}, {selector}gates: []}}\n");
    write_configuration(configuration.path(), &rule).unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_untaint"))
        .args(["manifests", "--image=registry.internal/untaint", "--config"])
        .arg(configuration.path())
        .args(more)
        .output()
        .unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{said}");
    said
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

/// Kubernetes before 1.36 does not have it, or has it in another version.
#[tokio::test]
async fn a_server_without_this_kind_of_policy_takes_everything_else_and_says_what_it_does_not_know()
{
    let Some(newest) = shared().await else {
        return;
    };
    let all = "mutatingadmissionpolicies mutatingadmissionpolicybindings";
    let served = ["get", "--raw", "/apis/admissionregistration.k8s.io/v1"];
    let is_served = newest
        .kubectl(&served)
        .await
        .unwrap()
        .contains("\"mutatingadmissionpolicies\"");
    let off: Vec<_> = all
        .split(' ')
        .map(|kind| format!("admissionregistration.k8s.io/v1/{kind}=false"))
        .collect();
    let off = format!("--runtime-config={}", off.join(","));
    let flags = [
        off.as_str(),
        "--feature-gates=MutatingAdmissionPolicy=false",
    ];
    let flags = if is_served { &flags[..] } else { &[] };
    let Some(cluster) = fresh(flags).await else {
        return;
    };
    let configuration = NamedTempFile::new().unwrap();
    let rules = "- {name: a, taint: {key: example.com/a, effect: NoSchedule}, gates: []}\n";
    write_configuration(configuration.path(), rules).unwrap();
    let file = configuration.path().to_str().unwrap();
    let yaml = written(&["--taint-new-nodes", "--config", file]).unwrap();
    let error = format!("{:#}", cluster.apply(&yaml).await.unwrap_err());
    for kind in ["MutatingAdmissionPolicy", "MutatingAdmissionPolicyBinding"] {
        let expected = format!(
            "no matches for kind \"{kind}\" in version \"admissionregistration.k8s.io/v1\""
        );
        assert!(error.contains(&expected), "{error}");
    }
    for object in [
        "validatingadmissionpolicybinding",
        "daemonset",
        "clusterrolebinding",
    ] {
        let get = ["get", object, "untaint", "--namespace", "untaint"];
        cluster.kubectl(&get).await.unwrap();
    }
}
