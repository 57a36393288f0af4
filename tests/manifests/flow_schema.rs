//! The priority of untaint's requests.

use std::fs;
use std::process::Command;

use http::Request;
use kube::client::Body;
use serde_json::{Value, json};
use tempfile::tempdir;
use testkit::DEADLINE;
use testkit::cluster::{self, Cluster, shared};
use tokio::time::timeout;

use crate::render::{Objects, ROOT, configuration, written};

const GATES: &str = "gates: [{name: p, pods: {namespace: shop, matchLabels: {a: b}}}, {name: d, csiDriver: {name: a.b}}]\nevents: true";

#[test]
fn a_flow_schema_is_written_only_if_asked_for_and_has_only_what_removals_need() {
    let file = configuration(GATES);
    let config = ["--config", file.path().to_str().unwrap()];
    assert!(Objects::written(&config).all("FlowSchema").is_empty());
    let objects = Objects::written(&[&config[..], &["--flow-schema", "--only=rbac"]].concat());
    let rules = &objects.one("FlowSchema")["spec"]["rules"];
    let expected = json!([{
        "subjects": [{"kind": "ServiceAccount", "serviceAccount": {"name": "untaint", "namespace": "untaint"}}],
        "resourceRules": [
            {"apiGroups": [""], "resources": ["nodes", "nodes/status"], "verbs": ["list", "watch", "get", "patch"], "clusterScope": true, "namespaces": ["*"]},
            {"apiGroups": [""], "resources": ["pods"], "verbs": ["list", "watch"], "namespaces": ["shop"]},
            {"apiGroups": ["storage.k8s.io"], "resources": ["csinodes"], "verbs": ["list", "watch"], "clusterScope": true, "namespaces": ["*"]},
        ],
    }]);
    assert_eq!(*rules, expected);
    let others = ["--flow-schema", "--form=sidecar", "--service-account=a"];
    let error = written(&[&config[..], &others].concat()).unwrap_err();
    assert!(
        error.contains("--flow-schema is for the form daemonset"),
        "{error}"
    );
}

#[test]
fn an_output_without_the_roles_has_a_warning_that_there_is_no_flow_schema() {
    let file = configuration(GATES);
    let warning = "warning: --flow-schema does nothing, because --only without rbac writes no FlowSchema: add rbac to --only\n";
    for (only, is_warned) in [("--only=policy,config", true), ("--only=rbac", false)] {
        let output = Command::new(env!("CARGO_BIN_EXE_untaint"))
            .args(["manifests", "--flow-schema", only, "--config"])
            .arg(file.path())
            .output()
            .unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(said.contains(warning), is_warned, "{only}: {said}");
    }
}

/// The uid of the FlowSchema and of the priority level for the requests of an account for its Node.
async fn priority(cluster: &Cluster, namespace: &str, account: &str) -> [String; 2] {
    let directory = tempdir().unwrap();
    let token = cluster.token(namespace, account).await.unwrap();
    let kubeconfig = cluster.kubeconfig(directory.path(), &token).unwrap();
    let client = cluster::client(&kubeconfig).await.unwrap();
    let request = Request::get("/api/v1/nodes/flow")
        .body(Body::empty())
        .unwrap();
    let answer = client.send(request).await.unwrap();
    // `ResponseHeaderMatchedFlowSchemaUID` in k8s.io/api/flowcontrol/v1.
    ["flowschema", "prioritylevel"].map(|what| {
        let name = format!("x-kubernetes-pf-{what}-uid");
        answer.headers()[name].to_str().unwrap().to_owned()
    })
}

async fn uid(cluster: &Cluster, object: &str) -> String {
    let arguments = ["get", object, "--output=jsonpath={.metadata.uid}"];
    cluster.kubectl(&arguments).await.unwrap()
}

/// The `replacements` of docs/manifests.md.
fn replacements() -> String {
    let page = fs::read_to_string(format!("{ROOT}/docs/manifests.md")).unwrap();
    let (_, text) = page
        .split_once("# kustomization.yaml: the account in the FlowSchema\n")
        .unwrap();
    let text = text.split_once("```").unwrap().0;
    text.replace("name: untaint,", "name: flow,")
}

/// As it is written, and renamed by kustomize.
#[tokio::test]
async fn the_requests_of_the_account_have_the_priority_of_kubelets_also_after_a_renaming() {
    let Some(cluster) = shared().await else {
        return;
    };
    let file = configuration(GATES);
    let yaml = written(&[
        "--config",
        file.path().to_str().unwrap(),
        "--flow-schema",
        "--namespace=flows",
        "--service-account=flow",
    ])
    .unwrap();
    for namespace in ["flows", "other-flows"] {
        cluster
            .kubectl(&["create", "namespace", namespace])
            .await
            .unwrap();
    }
    let node_high = uid(cluster, "prioritylevelconfiguration/node-high").await;
    for (fields, namespace, account) in [
        ("", "flows", "flow"),
        (
            "namePrefix: pre-\nnamespace: other-flows\n",
            "other-flows",
            "pre-flow",
        ),
        ("nameSuffix: -post\n", "flows", "flow-post"),
    ] {
        let directory = tempdir().unwrap();
        let write = |name, text: &str| fs::write(directory.path().join(name), text).unwrap();
        write("untaint.yaml", &yaml);
        let replaced = if fields.is_empty() {
            String::new()
        } else {
            replacements()
        };
        write(
            "kustomization.yaml",
            &format!("resources: [untaint.yaml]\n{fields}{replaced}"),
        );
        let objects = Objects::of(cluster, directory.path()).await;
        let flow = objects.one("FlowSchema");
        let expected = json!({"name": account, "namespace": namespace});
        assert_eq!(
            flow["spec"]["rules"][0]["subjects"][0]["serviceAccount"],
            expected
        );
        for kind in ["ServiceAccount", "FlowSchema"] {
            let object: &Value = objects.one(kind);
            cluster.apply(&object.to_string()).await.unwrap();
        }
        let name = flow["metadata"]["name"].as_str().unwrap();
        let expected = [
            uid(cluster, &format!("flowschema/{name}")).await,
            node_high.clone(),
        ];
        let in_force = async { while priority(cluster, namespace, account).await != expected {} };
        timeout(DEADLINE, in_force).await.unwrap();
    }
    // Without the replacements: this is why the documents have it.
    let directory = tempdir().unwrap();
    fs::write(directory.path().join("untaint.yaml"), &yaml).unwrap();
    let kustomization = "resources: [untaint.yaml]\nnamePrefix: pre-\n";
    fs::write(directory.path().join("kustomization.yaml"), kustomization).unwrap();
    let objects = Objects::of(cluster, directory.path()).await;
    let subject = &objects.one("FlowSchema")["spec"]["rules"][0]["subjects"][0];
    assert_eq!(subject["serviceAccount"]["name"], "flow");
}
