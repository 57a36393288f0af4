//! What the workloads may do.

use serde_json::{Value, json};
use testkit::cluster::shared;

use crate::render::{FORMS, Objects, configuration, list};

/// An API group that no server has.
const NOWHERE: &str = "untaint.dev";

#[tokio::test]
async fn every_form_may_get_list_watch_and_patch_nodes_and_nothing_else() {
    let Some(cluster) = shared().await else {
        return;
    };
    let rules = [json!({
        "apiGroups": [""],
        "resources": ["nodes"],
        "verbs": ["list", "watch", "get", "patch"],
    })];
    for form in FORMS {
        let objects = Objects::of_form(cluster, form).await;
        let role = objects.one("ClusterRole");
        let of_servers = list(&role["rules"]).iter();
        let of_servers = of_servers.filter(|rule| rule["apiGroups"] != json!([NOWHERE]));
        assert!(of_servers.eq(&rules), "{form}: {role}");
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

/// What marks the account for the policies: nothing can be asked for by it.
#[test]
fn the_role_alone_has_what_marks_its_account_and_other_rules_are_another_mark() {
    let marks = |arguments: &[&str]| {
        let file = configuration("publishCondition: {type: example.com/c}\n  dryRun: false");
        let path = file.path().to_str().unwrap();
        let arguments = [&["--config", path, "--only", "rbac"], arguments].concat();
        let objects = Objects::written(&arguments);
        let role = objects.one("ClusterRole");
        let marks = list(&role["rules"])
            .iter()
            .filter(|rule| rule["apiGroups"] == json!([NOWHERE]));
        let mark = |rule: &Value| {
            let word = |field: &str| rule[field][0].as_str().unwrap().to_owned();
            format!(
                "{} {} {}",
                word("verbs"),
                word("resources"),
                word("resourceNames")
            )
        };
        marks.map(mark).collect::<Vec<_>>()
    };
    let own = marks(&[]);
    let [hold, follow, remove, publish] = own.as_slice() else {
        panic!("{own:?}");
    };
    assert_eq!(hold, "hold ownnode untaint:untaint");
    assert_eq!(remove, "remove taints example.com/a");
    assert_eq!(publish, "publish conditions example.com/c");
    let of_others = [
        "--form",
        "sidecar",
        "--namespace",
        "n",
        "--service-account",
        "a",
    ];
    let strict = marks(&[&of_others[..], &["--strict-policy"]].concat());
    assert_eq!(strict[0], "hold ownnode n:a");
    // What is held to the same is held by the same rules, and what is not is not.
    assert_eq!(&strict[1], follow);
    let shared = marks(&of_others);
    assert_eq!(shared[0], "hold owntaints n:a");
    assert_ne!(&shared[1], follow);
    assert_ne!(&marks(&["--check-node-uid"])[1], follow);
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
            if group == NOWHERE {
                continue;
            }
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
        ("gates: [{name: a, nodeLabel: {key: a}}]", &[NODES]),
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
        // Not the DaemonSets, and not the pods of other namespaces.
        (
            "gates: [{name: a, pods: {namespace: one, every: true, daemonSets: [a]}}]",
            &[NODES, "one /pods list,watch"],
        ),
        (
            "gates: [{name: a, allocatable: {resource: nvidia.com/gpu, atLeast: 1, equalsCapacity: true}}]",
            &[NODES],
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
