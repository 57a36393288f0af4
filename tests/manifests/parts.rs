//! Parts of the manifests for different people, and for pods that somebody has already.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};
use tempfile::tempdir;
use testkit::cluster::{Cluster, shared};

use crate::render::{FORMS, Objects, list, written};

/// One document of each kind, in order.
fn kinds(objects: &Objects) -> Vec<&str> {
    let mut kinds: Vec<_> = objects
        .0
        .iter()
        .filter_map(|o| o["kind"].as_str())
        .collect();
    kinds.dedup();
    kinds
}

/// `kubectl apply` creates the objects in this order.
#[test]
fn the_policies_come_before_the_roles_that_they_restrict() {
    for form in FORMS {
        let arguments = ["--config=examples/flannel.yaml", "--form", form];
        let own = form == "daemonset";
        let account: &[_] = if own { &[] } else { &["--namespace=shop"] };
        let objects = Objects::written(&[&arguments[..], account].concat());
        let kinds = kinds(&objects);
        let place = |wanted: &str| kinds.iter().position(|kind| kind.starts_with(wanted));
        let (binding, role) = (
            place("ValidatingAdmissionPolicyBinding").unwrap(),
            place("ClusterRole").unwrap(),
        );
        assert!(binding < role, "{form}: {kinds:?}");
    }
}

#[test]
fn each_part_is_written_alone_and_all_parts_together_are_everything() {
    for form in FORMS {
        let write = |more: &[&str]| {
            let arguments = [
                "--config=examples/flannel.yaml",
                "--form",
                form,
                "--namespace=shop",
                "--service-account=agent",
            ];
            Objects::written(&[&arguments[..], more].concat())
        };
        let mut parts = Vec::new();
        for part in ["rbac", "policy", "config", "workload"] {
            parts.extend(write(&["--only", part]).0);
        }
        let all = write(&[]).0;
        assert_eq!(parts.len(), all.len(), "{form}");
        assert!(parts.iter().all(|part| all.contains(part)), "{form}");

        assert_eq!(kinds(&write(&["--only=config"])), ["ConfigMap"], "{form}");
        let account = (form == "daemonset").then_some("ServiceAccount");
        let workload: Vec<_> = account.into_iter().chain(["DaemonSet"]).collect();
        assert_eq!(kinds(&write(&["--only=workload"])), workload, "{form}");
    }
}

#[test]
fn a_patch_is_for_the_forms_in_which_untaint_is_a_container_of_somebody_elses_pods() {
    let no_patch = "--patch is for the forms sidecar and init-container: ";
    for (arguments, expected) in [
        (&["--form=daemonset", "--patch=agent"][..], no_patch),
        (&["--form=post-start", "--patch=agent"], no_patch),
        (
            &["--form=init-container", "--patch=agent"],
            "--patch with the form init-container needs --after: ",
        ),
        (
            &["--form=sidecar", "--patch=agent", "--after=prepare"],
            "--after is for the form init-container: ",
        ),
        (
            &["--form=init-container", "--after=prepare"],
            "error: the following required arguments were not provided:\n  --patch <DAEMONSET>",
        ),
        (
            &["--form=sidecar", "--patch=agent", "--only=config"],
            "error: the argument '--patch <DAEMONSET>' cannot be used with '--only <PART>'",
        ),
        (
            &["--form=sidecar", "--patch=No Name"],
            "error: invalid value 'No Name' for '--patch <DAEMONSET>'",
        ),
    ] {
        let account = ["--config=examples/flannel.yaml", "--service-account=agent"];
        let error = written(&[&account[..], arguments].concat()).unwrap_err();
        assert!(error.starts_with(expected), "{arguments:?}: {error}");
    }
}

/// A DaemonSet with names that a patch could hit: one of the volumes is `config`.
fn daemon_set(namespace: &str) -> Value {
    let container = |name: &str| json!({"name": name, "image": "busybox:1.37"});
    let mut work = container("prepare");
    work["volumeMounts"] = json!([{"name": "config", "mountPath": "/etc/untaint"}]);
    json!({
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {"name": "agent", "namespace": namespace},
        "spec": {
            "selector": {"matchLabels": {"app": "agent"}},
            "template": {
                "metadata": {"labels": {"app": "agent"}},
                "spec": {
                    "serviceAccountName": "agent",
                    "tolerations": [{"key": "storage.example.com/agent-not-ready", "operator": "Exists"}],
                    "initContainers": [container("first"), work, container("later")],
                    "containers": [container("agent")],
                    "volumes": [{"name": "config", "emptyDir": {}}, {"name": "host-0", "emptyDir": {}}],
                },
            },
        },
    })
}

/// Everything is there that was there before, and untaint's container with all its volumes.
fn assert_patched(before: &Value, after: &Value, config_map: &Value, is_after_work: bool) {
    let [before, after] = [before, after].map(|object| &object["spec"]["template"]["spec"]);
    let mut rest = after.clone();
    let is_own = |item: &Value| {
        let name = item["name"].as_str().unwrap();
        name == "untaint" || name.starts_with("untaint-")
    };
    for field in ["initContainers", "volumes"] {
        let items = rest[field].as_array_mut().unwrap();
        items.retain(|item| !is_own(item));
        items.sort_by_key(|item| item["name"].to_string());
        let mut expected = list(&before[field]).to_vec();
        expected.sort_by_key(|item| item["name"].to_string());
        assert_eq!(*items, expected);
        rest[field] = before[field].clone();
    }
    assert_eq!(rest, *before);

    let containers = list(&after["initContainers"]);
    let names: Vec<_> = containers
        .iter()
        .map(|c| c["name"].as_str().unwrap())
        .collect();
    let place = |name: &str| names.iter().position(|other| *other == name).unwrap();
    assert!(place("first") < place("prepare") && place("prepare") < place("later"));
    if is_after_work {
        assert!(place("untaint") > place("prepare"), "{names:?}");
    }
    let container = &containers[place("untaint")];
    assert_eq!(container["env"][0]["name"], "NODE_NAME");
    let volumes = list(&after["volumes"]);
    let mounts = list(&container["volumeMounts"]);
    let mut paths = Vec::new();
    for mount in mounts {
        let volume = volumes
            .iter()
            .find(|volume| volume["name"] == mount["name"]);
        let volume = volume.unwrap();
        let path = mount["mountPath"].as_str().unwrap();
        paths.push(path);
        if path == "/etc/untaint" {
            assert_eq!(volume["configMap"]["name"], config_map["metadata"]["name"]);
        } else {
            assert_eq!(volume["hostPath"]["path"], mount["mountPath"]);
        }
    }
    assert!(paths.contains(&"/etc/untaint") && paths.contains(&"/run/storage-agent"));
}

async fn get(cluster: &Cluster, namespace: &str) -> Value {
    let arguments = [
        "--namespace",
        namespace,
        "get",
        "daemonset/agent",
        "--output=json",
    ];
    serde_json::from_str(&cluster.kubectl(&arguments).await.unwrap()).unwrap()
}

async fn apply(cluster: &Cluster, directory: &Path, text: &str) {
    let file = directory.join("part.yaml");
    fs::write(&file, text).unwrap();
    let arguments = [
        "apply",
        "--warnings-as-errors",
        "--filename",
        file.to_str().unwrap(),
    ];
    cluster.kubectl(&arguments).await.unwrap();
}

/// Roles, policies, the configuration and the pods can be the business of different people.
#[tokio::test]
async fn a_daemon_set_that_is_there_gets_all_that_untaint_needs_from_separate_parts_and_a_patch() {
    let Some(cluster) = shared().await else {
        return;
    };
    for (form, more) in [
        ("sidecar", &[][..]),
        ("init-container", &["--after=first,prepare"]),
    ] {
        let namespace = format!("patched-{form}");
        let directory = tempdir().unwrap();
        let write = |more: &[&str]| {
            let arguments = [
                "--config=examples/storage-agent.yaml",
                "--form",
                form,
                "--namespace",
                &namespace,
                "--service-account=agent",
            ];
            written(&[&arguments[..], more].concat()).unwrap()
        };
        let arguments = ["create", "namespace", &namespace];
        cluster.kubectl(&arguments).await.unwrap();
        apply(
            cluster,
            directory.path(),
            &daemon_set(&namespace).to_string(),
        )
        .await;
        let before = get(cluster, &namespace).await;
        for part in ["rbac", "policy", "config"] {
            apply(cluster, directory.path(), &write(&["--only", part])).await;
        }
        let config = write(&["--only=config"]);
        let config = Objects(serde_yaml::from_multiple(&config).unwrap());
        let config_map = config.one("ConfigMap");

        let patch = directory.path().join("patch.yaml");
        fs::write(&patch, write(&[&["--patch=agent"], more].concat())).unwrap();
        let arguments = [
            "--namespace",
            &namespace,
            "patch",
            "daemonset/agent",
            "--patch-file",
            patch.to_str().unwrap(),
        ];
        let is_after_work = form == "init-container";
        cluster.kubectl(&arguments).await.unwrap();
        let after = get(cluster, &namespace).await;
        assert_patched(&before, &after, config_map, is_after_work);
        let again = cluster.kubectl(&arguments).await.unwrap();
        assert_eq!(again.trim_end(), "daemonset.apps/agent patched (no change)");

        // The same from a kustomization, of the object as its owner has written it.
        let resource = directory.path().join("agent.yaml");
        fs::write(&resource, daemon_set(&namespace).to_string()).unwrap();
        let kustomization = "resources: [agent.yaml]\npatches: [{path: patch.yaml}]\n";
        fs::write(directory.path().join("kustomization.yaml"), kustomization).unwrap();
        let objects = Objects::of(cluster, directory.path()).await;
        let after = objects.one("DaemonSet");
        assert_patched(&daemon_set(&namespace), after, config_map, is_after_work);
        apply(cluster, directory.path(), &after.to_string()).await;
    }
}
