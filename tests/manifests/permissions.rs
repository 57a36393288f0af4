//! What the workloads may do.

use std::fs;

use serde_json::{Value, json};
use testkit::cluster::shared;

use crate::render::{FORMS, Objects, ROOT};

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
        let account = objects.one("ServiceAccount");
        assert_eq!(
            objects.pod()["serviceAccountName"],
            account["metadata"]["name"],
            "{form}"
        );
        let namespace = &objects.one("DaemonSet")["metadata"]["namespace"];
        assert_eq!(namespace, &account["metadata"]["namespace"], "{form}");

        let binding = objects.one("ClusterRoleBinding");
        assert_eq!(binding["roleRef"]["kind"], "ClusterRole", "{form}");
        assert_eq!(
            binding["roleRef"]["name"],
            objects.one("ClusterRole")["metadata"]["name"],
            "{form}"
        );
        let subject = json!({
            "kind": "ServiceAccount",
            "name": account["metadata"]["name"],
            "namespace": account["metadata"]["namespace"],
        });
        assert_eq!(binding["subjects"], json!([subject]), "{form}");
    }
}

#[tokio::test]
async fn each_optional_role_is_for_one_resource_and_the_service_account_of_the_pods() {
    let Some(cluster) = shared().await else {
        return;
    };
    let bound = Objects::of_form(cluster, "daemonset").await;
    let watch = &["list", "watch"][..];
    for (file, kind, group, resource, verbs) in [
        (
            "csinodes",
            "ClusterRole",
            "storage.k8s.io",
            "csinodes",
            watch,
        ),
        ("pods", "Role", "", "pods", watch),
        (
            "nodes-status",
            "ClusterRole",
            "",
            "nodes/status",
            &["patch"],
        ),
    ] {
        let yaml = fs::read_to_string(format!("{ROOT}/rbac/optional/{file}.yaml")).unwrap();
        let objects = Objects(serde_yaml::from_multiple(&yaml).unwrap());
        assert_eq!(objects.0.len(), 2, "{file}");
        let role = objects.one(kind);
        let granted = json!({"apiGroups": [group], "resources": [resource], "verbs": verbs});
        assert_eq!(role["rules"], json!([granted]), "{file}");
        let binding = objects.one(&format!("{kind}Binding"));
        let reference = json!({
            "apiGroup": "rbac.authorization.k8s.io",
            "kind": kind,
            "name": role["metadata"]["name"],
        });
        assert_eq!(binding["roleRef"], reference, "{file}");
        let subjects = &bound.one("ClusterRoleBinding")["subjects"];
        assert_eq!(&binding["subjects"], subjects, "{file}");
        // The namespace is the one of the command.
        for object in [role, binding] {
            assert_eq!(object["metadata"]["namespace"], Value::Null, "{file}");
        }
    }
}
