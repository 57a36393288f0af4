//! What the pods of every form have in common.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use testkit::cluster::shared;

use crate::render::{FORMS, Objects, list};

#[tokio::test]
async fn every_pod_is_admitted_to_every_linux_node_however_tainted_and_is_the_last_to_be_evicted() {
    let Some(cluster) = shared().await else {
        return;
    };
    for form in FORMS {
        let objects = Objects::of_form(cluster, form).await;
        let pod = objects.pod();
        assert_eq!(
            pod["tolerations"],
            json!([{"operator": "Exists"}]),
            "{form}"
        );
        assert_eq!(
            pod["nodeSelector"],
            json!({"kubernetes.io/os": "linux"}),
            "{form}"
        );
        assert_eq!(pod["priorityClassName"], "system-node-critical", "{form}");
    }
}

#[tokio::test]
async fn untaint_has_no_capability_and_can_write_nothing_but_its_own_volume() {
    let Some(cluster) = shared().await else {
        return;
    };
    for form in FORMS {
        let objects = Objects::of_form(cluster, form).await;
        for program in objects.programs() {
            // The hook's container is the vendor's.
            if program.path().is_some() {
                continue;
            }
            let context = &program.container["securityContext"];
            assert_eq!(context["capabilities"], json!({"drop": ["ALL"]}), "{form}");
            assert_eq!(context["allowPrivilegeEscalation"], false, "{form}");
            assert_eq!(context["readOnlyRootFilesystem"], true, "{form}");
            assert_eq!(context["privileged"], Value::Null, "{form}");
            assert_eq!(
                context["seccompProfile"]["type"], "RuntimeDefault",
                "{form}"
            );
        }
    }
}

/// kubernetes#50345 (B31).
#[tokio::test]
async fn nothing_is_mounted_by_sub_path() {
    let Some(cluster) = shared().await else {
        return;
    };
    for form in FORMS {
        for object in Objects::of_form(cluster, form).await.0 {
            let text = object.to_string();
            assert!(!text.contains("subPath"), "{form}: {text}");
        }
    }
}

#[tokio::test]
async fn every_form_has_one_image_and_it_is_of_this_version() {
    let Some(cluster) = shared().await else {
        return;
    };
    let mut images = BTreeSet::new();
    for form in FORMS {
        let objects = Objects::of_form(cluster, form).await;
        for program in objects.programs() {
            if program.path().is_none() {
                images.insert(program.container["image"].as_str().unwrap().to_owned());
            }
        }
    }
    let expected = concat!("registry.example.com/untaint:", env!("CARGO_PKG_VERSION"));
    assert_eq!(images, BTreeSet::from([expected.to_owned()]));
}

/// cloudwatch-agent-operator#183, ebs-csi#488 (D21): a pod of a DaemonSet that is created there stays Pending forever.
#[tokio::test]
async fn no_pod_is_created_for_a_node_that_is_not_a_machine() {
    let Some(cluster) = shared().await else {
        return;
    };
    for form in FORMS {
        let objects = Objects::of_form(cluster, form).await;
        let affinity = &objects.pod()["affinity"]["nodeAffinity"];
        let required = &affinity["requiredDuringSchedulingIgnoredDuringExecution"];
        let [term] = list(&required["nodeSelectorTerms"]) else {
            panic!("{affinity}");
        };
        let is_admitted = |labels: &Value| {
            list(&term["matchExpressions"]).iter().all(|expression| {
                assert_eq!(expression["operator"], "NotIn");
                let label = &labels[expression["key"].as_str().unwrap()];
                !list(&expression["values"]).contains(label)
            })
        };
        for (labels, expected) in [
            (json!({}), true),
            (json!({"eks.amazonaws.com/compute-type": "fargate"}), false),
            (json!({"type": "virtual-kubelet"}), false),
            // These are machines.
            (json!({"eks.amazonaws.com/compute-type": "auto"}), true),
            (json!({"eks.amazonaws.com/compute-type": "hybrid"}), true),
            (json!({"type": "gpu"}), true),
        ] {
            assert_eq!(is_admitted(&labels), expected, "{form}: {labels}");
        }
    }
}
