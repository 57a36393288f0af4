//! What the workloads may do.

use serde_json::json;
use testkit::cluster::shared;

use crate::render::{FORMS, Objects, configuration, list};

#[tokio::test]
async fn every_form_may_get_list_watch_and_patch_nodes_and_nothing_else() {
    let Some(cluster) = shared().await else {
        return;
    };
    let rules = json!([{
        "apiGroups": [""],
        "resources": ["nodes"],
        "verbs": ["list", "watch", "get", "patch"],
    }]);
    for form in FORMS {
        let objects = Objects::of_form(cluster, form).await;
        let role = objects.one("ClusterRole");
        assert_eq!(role["rules"], rules, "{form}");
        assert_eq!(role["aggregationRule"], json!(null), "{form}");
        assert!(objects.all("Role").is_empty(), "{form}");
        assert!(objects.all("RoleBinding").is_empty(), "{form}");
    }
}

#[tokio::test]
async fn the_role_is_bound_to_the_service_account_of_the_pods_and_to_no_other() {
    let Some(cluster) = shared().await else {
        return;
    };
    for form in FORMS {
        let objects = Objects::of_form(cluster, form).await;
        let binding = objects.one("ClusterRoleBinding");
        assert_eq!(binding["roleRef"]["kind"], "ClusterRole", "{form}");
        assert_eq!(
            binding["roleRef"]["name"],
            objects.one("ClusterRole")["metadata"]["name"],
            "{form}"
        );
        let subject = json!({
            "kind": "ServiceAccount",
            "name": objects.pod()["serviceAccountName"],
            "namespace": objects.one("DaemonSet")["metadata"]["namespace"],
        });
        assert_eq!(binding["subjects"], json!([subject]), "{form}");
    }
}

/// Everything that the roles of a configuration grant, as `namespace group/resource verb,verb`.
fn granted(objects: &Objects) -> Vec<String> {
    let roles = ["ClusterRole", "Role"]
        .map(|kind| objects.all(kind))
        .concat();
    let mut granted = Vec::new();
    for role in roles {
        let namespace = role["metadata"]["namespace"].as_str().unwrap_or("-");
        for rule in list(&role["rules"]) {
            let words = |field: &str| {
                let words = list(&rule[field]).iter().map(|word| word.as_str().unwrap());
                words.collect::<Vec<_>>().join(",")
            };
            let (group, resource) = (words("apiGroups"), words("resources"));
            granted.push(format!("{namespace} {group}/{resource} {}", words("verbs")));
        }
        let binding = format!("{}Binding", role["kind"].as_str().unwrap());
        let bindings = objects.all(&binding);
        let mut bindings = bindings.iter();
        let binding = bindings.find(|binding| {
            binding["roleRef"]["name"] == role["metadata"]["name"]
                && binding["metadata"]["namespace"] == role["metadata"]["namespace"]
        });
        assert!(binding.is_some(), "{role}");
    }
    granted
}

#[test]
fn what_is_granted_follows_from_what_the_configuration_uses_and_nothing_else() {
    const NODES: &str = "- /nodes list,watch,get,patch";
    for (rest, expected) in [
        ("", &[NODES][..]),
        (
            "gates: [{name: a, allocatable: {resource: example.com/a}}]",
            &[NODES],
        ),
        ("gates: [{name: a, nodeCondition: {type: Ready}}]", &[NODES]),
        ("dryRun: true", &["- /nodes list,watch,get"]),
        (
            "gates: [{name: a, csiDriver: {name: csi.example.com}}]",
            &[NODES, "- storage.k8s.io/csinodes list,watch"],
        ),
        (
            "gates: [{name: a, anyOf: [{name: b, csiDriver: {name: csi.example.com}}]}]",
            &[NODES, "- storage.k8s.io/csinodes list,watch"],
        ),
        (
            "gates: [{name: a, pods: {namespace: one, matchLabels: {app: a}}}, \
             {name: b, pods: {namespace: two, matchLabels: {app: b}}}, \
             {name: c, pods: {namespace: one, matchLabels: {app: c}}}]",
            &[NODES, "one /pods list,watch", "two /pods list,watch"],
        ),
        (
            "publishCondition: {type: example.com/a}",
            &[NODES, "- /nodes/status patch"],
        ),
        (
            "publishCondition: {type: example.com/a}\n  dryRun: true",
            &["- /nodes list,watch,get"],
        ),
        (
            "dryRun: false\nevents: true",
            &[NODES, "default events.k8s.io/events create,patch"],
        ),
    ] {
        let file = configuration(rest);
        let path = file.path().to_str().unwrap();
        let objects = Objects::written(&["--config", path, "--only", "rbac"]);
        assert_eq!(granted(&objects), expected, "{rest}");
    }
}
