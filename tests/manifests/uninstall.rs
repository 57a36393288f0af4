//! The commands under "Uninstalling" in docs/installing.md, as they stand there.

use std::fs;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use serde_json::json;
use tempfile::tempdir;
use testkit::cluster::{Cluster, fresh};
use tokio::process::Command;
use tokio::time::timeout;

use crate::render::{ROOT, written};

/// The commands between these two headings of a document, in their order.
fn commands(document: &str, from: &str, to: &str) -> Vec<String> {
    let text = fs::read_to_string(Path::new(ROOT).join(document)).unwrap();
    let (_, text) = text.split_once(&format!("\n{from}\n")).unwrap();
    let (text, _) = text.split_once(&format!("\n{to}\n")).unwrap();
    let blocks = text.split("```sh\n").skip(1);
    let blocks = blocks.map(|block| block.split_once("```").unwrap().0.to_owned());
    blocks.collect()
}

const DEADLINE: Duration = Duration::from_mins(1);

/// What bash prints for these commands, as the administrator.
async fn run(cluster: &Cluster, directory: &Path, commands: &str) -> String {
    let programs = std::env::join_paths(
        std::iter::once(cluster.programs().to_owned())
            .chain(std::env::split_paths(&std::env::var_os("PATH").unwrap())),
    );
    let bash = Command::new("bash")
        .args(["-euo", "pipefail", "-c", commands])
        .env("KUBECONFIG", cluster.admin_kubeconfig())
        .env("PATH", programs.unwrap())
        .current_dir(directory)
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .output();
    let output = timeout(DEADLINE, bash).await.unwrap().unwrap();
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{commands}: {error}");
    String::from_utf8(output.stdout).unwrap()
}

const KEY: &str = "node.cilium.io/agent-not-ready";

const CONFIGURATION: &str = "\
apiVersion: untaint/v1alpha1
kind: UntaintConfiguration
rules:
- name: network
  taint: {key: node.cilium.io/agent-not-ready, effect: NoSchedule}
  publishCondition: {type: example.com/NetworkReady}
  gates: []
";

/// Enough of Karpenter for a NodePool.
const NODE_POOL: &str = "\
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: nodepools.karpenter.sh}
spec:
  group: karpenter.sh
  names: {kind: NodePool, listKind: NodePoolList, plural: nodepools, singular: nodepool}
  scope: Cluster
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
";

/// cilium#31943 (C7): an uninstall must not strand nodes.
#[tokio::test]
async fn the_documented_uninstall_finds_what_gives_the_taint_and_leaves_nothing_but_the_taints_of_others()
 {
    let Some(cluster) = fresh(&[]).await else {
        return;
    };
    let directory = tempdir().unwrap();
    let steps = commands("docs/installing.md", "## Uninstalling", "## Limits");
    let [keys, givers, stop_giving, wait, delete, taints, conditions] = steps.as_slice() else {
        panic!("{steps:#?}");
    };
    let mutates = cluster.kubectl(&["get", "mutatingadmissionpolicies"]).await;
    let mutates = mutates.is_ok();

    let at = |name: &str| directory.path().join(name);
    let configuration = at("config.yaml");
    fs::write(&configuration, CONFIGURATION).unwrap();
    let configuration = configuration.to_str().unwrap();
    // No controller is here to end the deletion of a Namespace.
    cluster
        .kubectl(&["create", "namespace", "agents"])
        .await
        .unwrap();
    let mut arguments = vec![
        "--config",
        configuration,
        "--namespace=agents",
        "--toleration-policy",
    ];
    if mutates {
        arguments.push("--taint-new-nodes");
    }
    fs::write(at("untaint.yaml"), written(&arguments).unwrap()).unwrap();
    run(&cluster, directory.path(), "kubectl apply -f untaint.yaml").await;
    cluster.apply(NODE_POOL).await.unwrap();
    let established = [
        "wait",
        "--for=condition=Established",
        "crd/nodepools.karpenter.sh",
    ];
    cluster.kubectl(&established).await.unwrap();
    let pool = format!(
        "apiVersion: karpenter.sh/v1\nkind: NodePool\nmetadata: {{name: pool}}\nspec: {{template: {{spec: {{startupTaints: [{{key: {KEY}, effect: NoSchedule}}]}}}}}}\n"
    );
    cluster.apply(&pool).await.unwrap();
    let own = format!("{KEY}:NoSchedule");
    cluster
        .create_node("late", &[&own, "example.com/other:NoSchedule"])
        .await
        .unwrap();
    cluster.create_node("ready", &[]).await.unwrap();
    let condition = json!({"status": {"conditions": [
        {"type": "example.com/NetworkReady", "status": "True"},
        {"type": "Ready", "status": "True"},
    ]}});
    let condition = condition.to_string();
    let publish = [
        "patch",
        "node",
        "ready",
        "--subresource=status",
        "--patch",
        &condition,
    ];
    cluster.kubectl(&publish).await.unwrap();

    // Before Kubernetes 1.36, there is no such policy to ask for.
    let known = |commands: &str| {
        let lines = commands.lines();
        let known = lines.filter(|line| mutates || !line.contains("mutatingadmission"));
        known.collect::<Vec<_>>().join("\n") + "\n"
    };
    let names = keys.replace("instance=untaint\n", "instance=untaint.agents.untaint\n");
    assert_ne!(names, *keys);
    let givers = known(givers);
    let run =
        async |commands: &str| run(&cluster, directory.path(), &format!("{names}{commands}")).await;
    let found = run(&givers).await;
    assert!(found.contains(&format!("pool {KEY}\n")), "{found}");
    assert_eq!(found.contains("/untaint-new-nodes."), mutates, "{found}");
    run(&known(stop_giving)).await;
    assert!(!run(&givers).await.contains("untaint"));
    assert_eq!(run(wait).await, "late\n");

    run(delete).await;
    let left = commands(
        "docs/manifests.md",
        "## Applying the manifests",
        "## Argo CD and Flux",
    );
    let left = run(&known(&left.concat())).await;
    assert_eq!(left, "");
    run(&format!("{wait}{taints}{conditions}")).await;
    assert_eq!(run(wait).await, "");
    let late = cluster.node("late").await.unwrap();
    assert_eq!(late["spec"]["taints"][0]["key"], "example.com/other");
    let ready = cluster.node("ready").await.unwrap();
    let conditions = ready["status"]["conditions"].as_array().unwrap();
    let types: Vec<_> = conditions
        .iter()
        .map(|condition| &condition["type"])
        .collect();
    assert_eq!(types, ["Ready"]);
}
