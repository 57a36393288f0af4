//! What the real API server says to the manifests.

use std::collections::BTreeSet;
use std::fs;
use std::net::SocketAddr;
use std::path::PathBuf;

use serde_json::{Value, json};
use tempfile::tempdir;
use testkit::cluster::{Cluster, fresh, shared};

use crate::render::{FORMS, Objects, ROOT, list, written};

async fn apply(cluster: &Cluster, arguments: &[&str]) {
    let mut all = vec!["apply", "--warnings-as-errors"];
    all.extend(arguments);
    cluster.kubectl(&all).await.unwrap();
}

async fn apply_object(cluster: &Cluster, object: &Value, arguments: &[&str]) {
    let directory = tempdir().unwrap();
    let file = directory.path().join("object.json");
    fs::write(&file, object.to_string()).unwrap();
    let mut all = vec!["--filename", file.to_str().unwrap()];
    all.extend(arguments);
    apply(cluster, &all).await;
}

#[tokio::test]
async fn the_rbac_is_accepted_without_kustomize() {
    let Some(cluster) = shared().await else {
        return;
    };
    let directory = format!("{ROOT}/rbac");
    apply(cluster, &["--dry-run=server", "--filename", &directory]).await;
}

/// With all options; each example in one of the forms, each form with some of them.
#[tokio::test]
async fn what_is_written_from_an_example_can_be_applied_and_applied_again() {
    let Some(cluster) = shared().await else {
        return;
    };
    let examples = fs::read_dir(format!("{ROOT}/examples")).unwrap();
    let examples = examples.map(|entry| entry.unwrap().path());
    let is_yaml = |path: &PathBuf| path.extension().is_some_and(|kind| kind == "yaml");
    let examples: BTreeSet<_> = examples.filter(is_yaml).collect();
    assert!(examples.len() > FORMS.len());
    let directory = tempdir().unwrap();
    for (example, form) in examples.iter().zip(FORMS.into_iter().cycle()) {
        let namespace = example.file_stem().unwrap().to_str().unwrap();
        let arguments = [
            "--config",
            example.to_str().unwrap(),
            "--form",
            form,
            "--namespace",
            namespace,
            "--service-account",
            "some.account",
            "--exact-tolerations",
            "--selinux-type=spc_t",
            "--image=registry.example.com/untaint@sha256:0123",
            "--label=team=a,empty=",
            "--image-pull-secret=registry",
            "--node-selector=number=1,empty=",
        ];
        let flow_schema = (form == "daemonset").then_some("--flow-schema");
        let arguments: Vec<_> = arguments.into_iter().chain(flow_schema).collect();
        let text = written(&arguments).unwrap();
        assert_eq!(written(&arguments).unwrap(), text);
        let file = directory.path().join(namespace);
        fs::write(&file, &text).unwrap();
        // A gate for pods has a role in their namespace.
        let documents = serde_yaml::from_multiple::<Value>(&text).unwrap();
        let namespaces = documents
            .iter()
            .filter_map(|object| object["metadata"]["namespace"].as_str());
        for namespace in namespaces.collect::<BTreeSet<_>>() {
            if namespace != "kube-system" {
                apply_object(cluster, &namespaced(namespace), &[]).await;
            }
        }
        let file = file.to_str().unwrap();
        apply(cluster, &["--filename", file]).await;
        let again = cluster
            .kubectl(&["apply", "--filename", file])
            .await
            .unwrap();
        assert!(
            again.lines().all(|line| line.ends_with(" unchanged")),
            "{again}"
        );
        let documents = documents.len();
        assert_eq!(again.lines().count(), documents, "{again}");
    }
}

/// Of two files: each is a key, and the pods read the directory.
#[tokio::test]
async fn several_files_are_applied_as_one_configmap_that_the_pods_read_as_a_directory() {
    let Some(cluster) = shared().await else {
        return;
    };
    let files = ["examples/cilium.yaml", "examples/ebs-csi.yaml"];
    for form in FORMS {
        let namespace = format!("several-{form}");
        let arguments = [
            "--config",
            files[0],
            "--config",
            files[1],
            "--form",
            form,
            "--namespace",
            &namespace,
            "--service-account",
            "some.account",
            "--image=registry.internal/untaint:1",
        ];
        let text = written(&arguments).unwrap();
        let directory = tempdir().unwrap();
        let file = directory.path().join("untaint.yaml");
        fs::write(&file, &text).unwrap();
        apply_object(cluster, &namespaced(&namespace), &[]).await;
        apply(cluster, &["--filename", file.to_str().unwrap()]).await;

        let objects = Objects(serde_yaml::from_multiple(&text).unwrap());
        let name = objects.one("ConfigMap")["metadata"]["name"].as_str();
        let get = [
            "get",
            "configmap",
            name.unwrap(),
            "--namespace",
            &namespace,
            "--output=json",
        ];
        let stored: Value = serde_json::from_str(&cluster.kubectl(&get).await.unwrap()).unwrap();
        let data = stored["data"].as_object().unwrap();
        assert_eq!(data.len(), files.len());
        for file in files {
            let key = file.trim_start_matches("examples/");
            let original = fs::read_to_string(format!("{ROOT}/{file}")).unwrap();
            assert_eq!(data[key], original, "{key}");
        }
        let (_, run) = objects.runner();
        assert_eq!(run.config, [PathBuf::from("/etc/untaint")], "{form}");
        let volumes = list(&objects.pod()["volumes"]);
        assert!(
            volumes
                .iter()
                .any(|volume| volume["configMap"]["name"].as_str() == name)
        );
    }
}

fn namespaced(name: &str) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {
            "name": name,
            "labels": {"pod-security.kubernetes.io/enforce": "privileged"},
        },
    })
}

/// kubriX#2944 (B9): where a namespace does not say what its pods may do, the cluster's default decides, and refuses
/// pods that need the host without a word but the controller's.
#[tokio::test]
async fn every_form_is_accepted_and_so_are_its_pods_where_the_default_is_baseline() {
    let directory = tempdir().unwrap();
    let file = directory.path().join("admission.json");
    let configuration = json!({
        "apiVersion": "apiserver.config.k8s.io/v1",
        "kind": "AdmissionConfiguration",
        "plugins": [{
            "name": "PodSecurity",
            "configuration": {
                "apiVersion": "pod-security.admission.config.k8s.io/v1",
                "kind": "PodSecurityConfiguration",
                "defaults": {"enforce": "baseline"},
            },
        }],
    });
    fs::write(&file, configuration.to_string()).unwrap();
    let flag = format!("--admission-control-config-file={}", file.display());
    let Some(cluster) = fresh(&[&flag]).await else {
        return;
    };

    for form in FORMS {
        let objects = Objects::of_form(&cluster, form).await;
        // A dry run finds nothing in a namespace that is not there. Other forms than the DaemonSet come to one that is.
        let namespace = objects.one("DaemonSet")["metadata"]["namespace"].as_str();
        let namespace = match objects.all("Namespace").as_slice() {
            [namespace] => (*namespace).clone(),
            _ => namespaced(namespace.unwrap()),
        };
        apply_object(&cluster, &namespace, &[]).await;
        let directory = format!("{ROOT}/deploy/{form}");
        apply(&cluster, &["--dry-run=server", "--kustomize", &directory]).await;

        let daemon_set = objects.one("DaemonSet");
        let pod = json!({
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "pod", "namespace": daemon_set["metadata"]["namespace"]},
            "spec": objects.pod(),
        });
        apply_object(&cluster, &pod, &["--dry-run=server"]).await;
    }
}

#[tokio::test]
async fn the_quota_for_gke_is_for_the_class_and_the_namespace_of_the_daemon_set() {
    let Some(cluster) = shared().await else {
        return;
    };
    let objects = Objects::with_component(cluster, "resource-quota").await;

    let quota = objects.one("ResourceQuota");
    let daemon_set = objects.one("DaemonSet");
    assert_eq!(
        quota["metadata"]["namespace"],
        daemon_set["metadata"]["namespace"]
    );
    let class = json!({
        "scopeName": "PriorityClass",
        "operator": "In",
        "values": [objects.pod()["priorityClassName"]],
    });
    assert_eq!(
        quota["spec"]["scopeSelector"]["matchExpressions"],
        json!([class])
    );

    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "quota"}});
    let mut quota = quota.clone();
    quota["metadata"]["namespace"] = json!("quota");
    apply_object(cluster, &namespace, &[]).await;
    apply_object(cluster, &quota, &["--dry-run=server"]).await;
}

#[tokio::test]
async fn where_it_is_scraped_it_listens_on_the_node_and_its_probe_asks_there() {
    let Some(cluster) = shared().await else {
        return;
    };
    let objects = Objects::with_component(cluster, "scraped").await;
    let (program, _) = objects.runner();
    let container = program.container;
    let variable = |name: &str| {
        let mut variables = list(&container["env"]).iter();
        variables.find(|variable| variable["name"] == name).unwrap()
    };
    let field = &variable("HOST_IP")["valueFrom"]["fieldRef"]["fieldPath"];
    assert_eq!(field, "status.hostIP");
    let listen = variable("UNTAINT_LISTEN")["value"].as_str().unwrap();
    let listen = listen.replace("$(HOST_IP)", "192.0.2.1");
    let listen: SocketAddr = listen.parse().unwrap();
    // Without a host, the probe asks at the pod's address, which is the node's.
    assert_eq!(objects.pod()["hostNetwork"], true);
    let probe = &container["readinessProbe"]["httpGet"];
    assert_eq!(probe["host"], Value::Null);
    assert_eq!(probe["port"], listen.port());
    let port = json!([{"name": "metrics", "containerPort": listen.port()}]);
    assert_eq!(container["ports"], port);

    let mut daemon_set = objects.one("DaemonSet").clone();
    let namespace =
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "scraped"}});
    daemon_set["metadata"]["namespace"] = json!("scraped");
    apply_object(cluster, &namespace, &[]).await;
    apply_object(cluster, &daemon_set, &["--dry-run=server"]).await;
}
