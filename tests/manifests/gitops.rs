//! What Argo CD, Flux and other programs that apply manifests again and again do with them.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use serde_json::Value;
use tempfile::tempdir;
use testkit::cluster::{Cluster, fresh};

use crate::render::{FORMS, ROOT, copy, list, written};

/// Every object in this file or kustomization, with the version that the API server counts up with each change.
async fn versions(cluster: &Cluster, source: &[&str]) -> BTreeMap<String, String> {
    let get = [&["get", "--output=json"][..], source].concat();
    let found: Value = serde_json::from_str(&cluster.kubectl(&get).await.unwrap()).unwrap();
    let objects = list(&found["items"]).iter();
    let versions = objects.map(|object| {
        let text = |path| object.pointer(path).unwrap().as_str().unwrap();
        let name = format!("{} {}", text("/kind"), text("/metadata/name"));
        (name, text("/metadata/resourceVersion").to_owned())
    });
    versions.collect()
}

/// `kubectl apply`, then `kubectl apply --server-side`, then a program of its own, which applies it again and again.
async fn one_after_another_can_apply(cluster: &Cluster, source: &[&str]) {
    let apply = async |options: &[&str]| {
        let arguments = [&["apply", "--warnings-as-errors"], options, source].concat();
        cluster.kubectl(&arguments).await.unwrap();
    };
    apply(&[]).await;
    apply(&["--server-side"]).await;
    let program = ["--server-side", "--field-manager=argocd-controller"];
    apply(&program).await;
    let before = versions(cluster, source).await;
    assert!(before.len() > 3, "{before:?}");
    apply(&program).await;
    assert_eq!(versions(cluster, source).await, before, "{source:?}");
}

async fn create_namespaces_of(cluster: &Cluster, yaml: &str) {
    for object in serde_yaml::from_multiple::<Value>(yaml).unwrap() {
        if let Some(namespace) = object
            .pointer("/metadata/namespace")
            .and_then(Value::as_str)
        {
            // It may be there.
            let _ = cluster.kubectl(&["create", "namespace", namespace]).await;
        }
    }
}

/// Fields that have one owner together, such as `matchConstraints`, conflict where the server adds a default to them.
#[tokio::test]
async fn server_side_apply_after_kubectl_apply_has_no_conflict_and_changes_nothing_the_second_time()
{
    let Some(cluster) = fresh(&[]).await else {
        return;
    };
    for form in FORMS {
        let directory = format!("{ROOT}/deploy/{form}");
        let yaml = cluster.kubectl(&["kustomize", &directory]).await.unwrap();
        create_namespaces_of(&cluster, &yaml).await;
        one_after_another_can_apply(&cluster, &["--kustomize", &directory]).await;
    }
    let directory = tempdir().unwrap();
    let file = directory.path().join("untaint.yaml");
    let has_mutating_policies = cluster
        .kubectl(&["get", "mutatingadmissionpolicies"])
        .await
        .is_ok();
    for form in FORMS {
        let mut arguments = vec![
            "--config=examples/storage-agent.yaml",
            "--form",
            form,
            "--namespace=options",
            "--service-account",
            form,
            "--exact-tolerations",
            "--check-node-uid",
            "--strict-policy",
            "--selinux-type=spc_t",
            "--toleration-policy",
            "--node-name-policy=Warn",
            "--image=registry.example.com/untaint@sha256:0123",
            "--image-pull-secret=registry",
            "--label=team=nodes",
            "--node-selector=pool=a",
        ];
        if form == "daemonset" {
            arguments.push("--flow-schema");
        }
        if has_mutating_policies {
            arguments.push("--taint-new-nodes");
        }
        let yaml = written(&arguments).unwrap();
        create_namespaces_of(&cluster, &yaml).await;
        fs::write(&file, yaml).unwrap();
        one_after_another_can_apply(&cluster, &["--filename", file.to_str().unwrap()]).await;
    }
}

/// A remote base is a repository of its own: no file in it may refer to a file outside.
#[tokio::test]
async fn a_kustomization_elsewhere_can_use_every_form_and_every_component() {
    let Some(cluster) = fresh(&[]).await else {
        return;
    };
    let components = fs::read_dir(format!("{ROOT}/deploy/components")).unwrap();
    let components = components.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let components: Vec<_> = components.collect();
    assert!(!components.is_empty());
    let base = copy();
    let build = async |resource: &str, components: &[String]| {
        let own = tempdir().unwrap();
        // As a remote base is fetched: into a directory beside that of the user.
        let base = relative(own.path(), base.path());
        let components = components.iter();
        let components = components.map(|name| format!("{base}/deploy/components/{name}"));
        let components = components.collect::<Vec<_>>().join(", ");
        let kustomization =
            format!("resources: [{base}/deploy/{resource}]\ncomponents: [{components}]\n");
        fs::write(own.path().join("kustomization.yaml"), kustomization).unwrap();
        let directory = own.path().to_str().unwrap();
        cluster.kubectl(&["kustomize", directory]).await.unwrap()
    };
    for form in FORMS {
        assert!(build(form, &[]).await.contains("kind: DaemonSet"), "{form}");
    }
    let plain = build("daemonset", &[]).await;
    for component in components {
        let with = build("daemonset", std::slice::from_ref(&component)).await;
        assert_ne!(with, plain, "{component}");
    }
}

/// The path of `to` from `from`, of which neither contains the other.
fn relative(from: &Path, to: &Path) -> String {
    let up = "../".repeat(from.components().count() - 1);
    format!("{up}{}", to.to_str().unwrap().trim_start_matches('/'))
}
