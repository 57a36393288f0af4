//! The labels of the objects.

use serde_json::{Value, json};
use testkit::cluster::shared;

use crate::render::{FORMS, Objects, configuration, written};

/// The labels that every object of an installation has.
fn labels(instance: &str) -> Value {
    json!({
        "app.kubernetes.io/name": "untaint",
        "app.kubernetes.io/instance": instance,
        "app.kubernetes.io/part-of": "untaint",
    })
}

fn assert_labelled(object: &Value, instance: &str) {
    let mut found = object["metadata"]["labels"].clone();
    if object["kind"] == "Namespace"
        && let Some(found) = found.as_object_mut()
    {
        found.retain(|label, _| !label.starts_with("pod-security.kubernetes.io/"));
    }
    assert_eq!(found, labels(instance), "{object}");
}

#[test]
fn every_object_has_the_same_labels_which_name_the_installation() {
    let file = configuration(
        "gates: [{name: p, pods: {namespace: a, matchLabels: {a: b}}}, {name: d, csiDriver: {name: a.b}}]\n  \
         publishCondition: {type: example.com/A}\nevents: true",
    );
    let config = file.path().to_str().unwrap();
    for form in FORMS {
        for (account, instance) in [
            (&["--service-account=agent"][..], "untaint.untaint.agent"),
            (
                &["--namespace=shop", "--service-account=agent"],
                "untaint.shop.agent",
            ),
        ] {
            let arguments = [
                "--config",
                config,
                "--form",
                form,
                "--strict-policy",
                "--toleration-policy",
                "--node-name-policy",
            ];
            let objects = Objects::written(&[&arguments[..], account].concat());
            assert!(objects.0.len() > 15, "{}", objects.0.len());
            for object in &objects.0 {
                assert_labelled(object, instance);
            }
            let daemon_set = &objects.one("DaemonSet")["spec"];
            let template = &daemon_set["template"];
            assert_eq!(template["metadata"]["labels"], labels(instance));
            // The labels of another installation in the same namespace do not match.
            let selector = daemon_set["selector"]["matchLabels"].as_object().unwrap();
            assert_eq!(selector["app.kubernetes.io/instance"], instance);
            for (label, value) in selector {
                assert_eq!(labels(instance)[label], *value);
            }
        }
    }
}

#[tokio::test]
async fn what_is_shipped_has_the_same_labels() {
    let Some(cluster) = shared().await else {
        return;
    };
    for (form, instance) in FORMS.into_iter().zip([
        "untaint",
        "untaint.kube-flannel.flannel",
        "untaint.storage-agent.storage-agent",
        "untaint.vendor-agent.vendor-agent",
    ]) {
        for object in &Objects::of_form(cluster, form).await.0 {
            assert_labelled(object, instance);
        }
    }
    let objects = Objects::with_component(cluster, "resource-quota").await;
    assert_labelled(objects.one("ResourceQuota"), "untaint");
}

/// A label has at most 63 characters, and the name of an account up to 253.
#[tokio::test]
async fn an_account_with_the_longest_names_has_manifests_that_the_server_accepts() {
    let Some(cluster) = shared().await else {
        return;
    };
    let namespace = format!("n{}", "0".repeat(62));
    let account = format!("a{}.b", "0".repeat(200));
    let arguments = [
        "--config=examples/cilium.yaml",
        "--namespace",
        &namespace,
        "--service-account",
        &account,
    ];
    let text = written(&arguments).unwrap();
    cluster
        .kubectl(&["create", "namespace", &namespace])
        .await
        .unwrap();
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), text).unwrap();
    let file = file.path().to_str().unwrap();
    let arguments = ["apply", "--dry-run=server", "--filename", file];
    cluster.kubectl(&arguments).await.unwrap();
}

/// The second would replace the first without a word.
#[test]
fn no_object_of_two_installations_with_different_accounts_has_the_same_name() {
    let accounts = [
        ["--namespace=shop", "--service-account=a"],
        ["--namespace=shop", "--service-account=b"],
        ["--namespace=store", "--service-account=a"],
    ];
    for form in FORMS {
        let mut names = std::collections::BTreeSet::new();
        let mut count = 0;
        for account in &accounts {
            let arguments = ["--config=examples/storage-agent.yaml", "--form", form];
            let objects = Objects::written(&[&arguments[..], account].concat());
            for object in &objects.0 {
                let metadata = &object["metadata"];
                let name = [&object["kind"], &metadata["namespace"], &metadata["name"]];
                names.insert(name.map(Value::to_string));
                count += 1;
            }
        }
        assert_eq!(names.len(), count, "{form}: {names:?}");
    }
}
