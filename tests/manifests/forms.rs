//! What is particular to each form.

use std::fs;
use std::net::SocketAddr;
use std::path::Path;

use serde_json::{Value, json};
use tempfile::tempdir;
use testkit::cluster::shared;
use untaint::cli::{Command, NodeCommand};
use untaint::config;

use crate::render::{FORMS, Objects, ROOT, list, written};

/// The volume of a pod's container that is mounted at this path.
fn volume_at<'a>(pod: &'a Value, container: &Value, path: &Path) -> &'a Value {
    let mut mounts = list(&container["volumeMounts"]).iter();
    let mount = mounts.find(|mount| mount["mountPath"] == json!(path));
    let name = &mount.unwrap_or_else(|| panic!("nothing at {}", path.display()))["name"];
    let mut volumes = list(&pod["volumes"]).iter();
    volumes.find(|volume| volume["name"] == *name).unwrap()
}

fn names(containers: &Value) -> Vec<&str> {
    let containers = list(containers).iter();
    containers
        .map(|container| container["name"].as_str().unwrap())
        .collect()
}

/// With the DaemonSet's account, their policy would take the place of the DaemonSet's, which forbids more.
#[test]
fn other_forms_than_the_daemon_set_need_the_account_of_their_pods() {
    for form in ["sidecar", "init-container", "post-start"] {
        let arguments = ["--config", "examples/cilium.yaml", "--form", form];
        let error = written(&arguments).unwrap_err();
        assert_eq!(
            error,
            "this form is for the pods of another program: name the account of those pods with --namespace \
             and --service-account; untaint:untaint is the account of the form daemonset\n"
        );
        for other in ["--namespace=shop", "--service-account=agent"] {
            written(&[&arguments[..], &[other]].concat()).unwrap();
        }
    }
}

/// For forms whose pods start, and resolve names, before the CNI is there.
#[tokio::test]
async fn the_daemon_set_and_the_sidecar_need_no_cni() {
    let Some(cluster) = shared().await else {
        return;
    };
    for form in ["daemonset", "sidecar"] {
        let objects = Objects::of_form(cluster, form).await;
        assert_eq!(objects.pod()["hostNetwork"], true, "{form}");
        assert_eq!(objects.pod()["dnsPolicy"], "Default", "{form}");
    }
}

/// cilium#37589, calico#7461 (A13): CNI configurations are for root alone.
#[tokio::test]
async fn where_cni_configurations_are_read_untaint_is_root() {
    let Some(cluster) = shared().await else {
        return;
    };
    for (form, user) in [("daemonset", 0), ("sidecar", 0), ("init-container", 65532)] {
        let objects = Objects::of_form(cluster, form).await;
        let (program, _) = objects.runner();
        let context = &program.container["securityContext"];
        assert_eq!(context["runAsUser"], user, "{form}");
        assert_eq!(context["runAsGroup"], user, "{form}");
    }
}

#[tokio::test]
async fn the_probes_of_the_daemon_set_ask_where_it_listens_and_no_other_form_listens() {
    let Some(cluster) = shared().await else {
        return;
    };
    let daemon_set = Objects::of_form(cluster, "daemonset").await;
    let (program, args) = daemon_set.runner();
    assert!(!args.once);
    let probe = &program.container["readinessProbe"]["httpGet"];
    let host = probe["host"].as_str().unwrap();
    let port = probe["port"].as_u64().unwrap();
    let address: SocketAddr = format!("{host}:{port}").parse().unwrap();
    assert_eq!(args.listen(), Some(address));
    assert_eq!(probe["path"], "/readyz");
    // A roll-out waits for each node in turn.
    assert_eq!(program.container["readinessProbe"]["periodSeconds"], 2);
    // A port that another program of the host has taken must not have it killed.
    assert_eq!(program.container["livenessProbe"], Value::Null);
    for form in ["sidecar", "init-container", "post-start"] {
        let objects = Objects::of_form(cluster, form).await;
        let (program, args) = objects.runner();
        assert_eq!(args.listen(), None, "{form}");
        for probe in ["livenessProbe", "readinessProbe", "startupProbe"] {
            assert_eq!(program.container[probe], Value::Null, "{form}");
        }
    }
}

/// The kustomization in docs/installing.md for another address of the API server.
#[tokio::test]
async fn the_kustomization_in_the_documents_adds_the_address_of_the_api_server_and_changes_nothing_else()
 {
    const ADDRESS: [&str; 2] = ["KUBERNETES_SERVICE_HOST", "KUBERNETES_SERVICE_PORT"];
    let Some(cluster) = shared().await else {
        return;
    };
    let documents = fs::read_to_string(Path::new(ROOT).join("docs/installing.md")).unwrap();
    let begin = "# kustomization.yaml, with an address of the API server\n";
    let (_, kustomization) = documents.split_once(begin).unwrap();
    let (kustomization, _) = kustomization.split_once("```").unwrap();
    let directory = tempdir().unwrap();
    let manifests = written(&["--config=examples/cilium.yaml"]).unwrap();
    for (name, text) in [
        ("untaint.yaml", manifests.as_str()),
        ("kustomization.yaml", kustomization),
    ] {
        fs::write(directory.path().join(name), text).unwrap();
    }
    let mut patched = Objects::of(cluster, directory.path()).await;
    let (program, _) = patched.runner();
    let mut added = list(&program.container["env"]).to_vec();
    added.retain(|variable| ADDRESS.contains(&variable["name"].as_str().unwrap()));
    assert_eq!(
        added,
        [
            json!({"name": ADDRESS[0], "value": "api.example.com"}),
            json!({"name": ADDRESS[1], "value": "6443"}),
        ]
    );
    let sorted = |objects: &mut Vec<Value>| objects.sort_by_key(Value::to_string);
    for object in &mut patched.0 {
        if let Some(variables) = object
            .pointer_mut("/spec/template/spec/containers/0/env")
            .and_then(Value::as_array_mut)
        {
            variables.retain(|variable| !added.contains(variable));
        }
    }
    let mut plain = Objects::written(&["--config=examples/cilium.yaml"]);
    sorted(&mut patched.0);
    sorted(&mut plain.0);
    assert_eq!(patched.0, plain.0);
}

#[tokio::test]
async fn the_configuration_is_valid_and_where_the_command_line_says() {
    let Some(cluster) = shared().await else {
        return;
    };
    for form in FORMS {
        let objects = Objects::of_form(cluster, form).await;
        let (program, args) = objects.runner();
        let [path] = args.config.as_slice() else {
            panic!("{:?}", args.config);
        };
        let volume = volume_at(objects.pod(), program.container, path.parent().unwrap());
        let map = objects.one("ConfigMap");
        assert_eq!(
            volume["configMap"]["name"], map["metadata"]["name"],
            "{form}"
        );
        let file = path.file_name().unwrap().to_str().unwrap();
        config::parse(map["data"][file].as_str().unwrap()).unwrap();
    }
}

#[tokio::test]
async fn the_sidecar_is_a_native_one_and_stays() {
    let Some(cluster) = shared().await else {
        return;
    };
    let objects = Objects::of_form(cluster, "sidecar").await;
    let (program, args) = objects.runner();
    assert!(!args.once);
    assert_eq!(program.container["restartPolicy"], "Always");
    assert_eq!(names(&objects.pod()["initContainers"]), ["untaint"]);
}

#[tokio::test]
async fn the_init_container_comes_after_the_work_and_gives_up_in_time() {
    let Some(cluster) = shared().await else {
        return;
    };
    let objects = Objects::of_form(cluster, "init-container").await;
    let (_, args) = objects.runner();
    assert!(args.once && args.timeout.is_some());
    assert_eq!(
        names(&objects.pod()["initContainers"]),
        ["prepare", "untaint"]
    );
}

#[tokio::test]
async fn the_hook_starts_what_the_init_container_installs_and_gives_up_in_time() {
    let Some(cluster) = shared().await else {
        return;
    };
    let objects = Objects::of_form(cluster, "post-start").await;
    let pod = objects.pod();
    let programs = objects.programs();
    let [installer, hook] = programs.as_slice() else {
        panic!("{} programs", programs.len());
    };
    let Command::Node(NodeCommand::Install { directory }) = installer.command() else {
        panic!("{:?}", installer.command());
    };
    let path = Path::new(hook.path().unwrap());
    let from = volume_at(pod, installer.container, &directory);
    let to = volume_at(pod, hook.container, path.parent().unwrap());
    assert_eq!(from, to);
    assert_eq!(path.file_name().unwrap(), "untaint");

    let (_, args) = objects.runner();
    assert!(args.once && args.timeout.is_some());
}
