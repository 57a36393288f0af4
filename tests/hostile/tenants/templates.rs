//! Whoever makes a template of pods that would be refused is warned.

use http::Method;
use serde_json::{Value, json};
use tempfile::NamedTempFile;

use super::scene::{AGENT, Caller, SHOP, pod, refusing, template};
use crate::request::Request;

pub(crate) fn deployment(template: &Value) -> Value {
    json!({
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "app"},
        "spec": {"selector": {"matchLabels": {"app": "app"}}, "template": template},
    })
}

/// Collections, and in each an object whose pods have this spec.
fn workloads(spec: &Value) -> Vec<(&'static str, Value)> {
    let template = template(spec);
    let object = |version: &str, kind: &str, spec: Value| json!({"apiVersion": version, "kind": kind, "metadata": {"name": "app"}, "spec": spec});
    let selector = json!({"matchLabels": {"app": "app"}});
    let mut of_job = template.clone();
    of_job["spec"]["restartPolicy"] = json!("Never");
    let job = json!({"template": of_job});
    let selected = json!({"selector": selector, "template": template});
    vec![
        (
            "/apis/apps/v1/namespaces/shop/deployments",
            deployment(&template),
        ),
        (
            "/apis/apps/v1/namespaces/shop/replicasets",
            object("apps/v1", "ReplicaSet", selected.clone()),
        ),
        (
            "/apis/apps/v1/namespaces/shop/daemonsets",
            object("apps/v1", "DaemonSet", selected.clone()),
        ),
        (
            "/apis/apps/v1/namespaces/shop/statefulsets",
            object("apps/v1", "StatefulSet", selected),
        ),
        (
            "/apis/batch/v1/namespaces/shop/jobs",
            object("batch/v1", "Job", job.clone()),
        ),
        (
            "/apis/batch/v1/namespaces/shop/cronjobs",
            object(
                "batch/v1",
                "CronJob",
                json!({"schedule": "* * * * *", "jobTemplate": {"spec": job}}),
            ),
        ),
        (
            "/api/v1/namespaces/shop/replicationcontrollers",
            object(
                "v1",
                "ReplicationController",
                json!({"selector": {"app": "app"}, "template": template}),
            ),
        ),
        (
            "/api/v1/namespaces/shop/podtemplates",
            json!({"apiVersion": "v1", "kind": "PodTemplate", "metadata": {"name": "app"}, "template": template}),
        ),
    ]
}

#[tokio::test]
async fn who_makes_or_changes_a_template_of_pods_that_would_be_refused_is_warned_and_not_refused() {
    let Some(scene) = refusing().await else {
        return;
    };
    let spec = |more: &Value| pod(more)["spec"].clone();
    let slipping = spec(&json!({"tolerations": [{"operator": "Exists"}]}));
    let named = spec(&json!({"nodeName": "node"}));
    let harmless =
        spec(&json!({"tolerations": [{"key": "example.com/other", "operator": "Exists"}]}));
    for ((name, slips), policy, words) in [
        (
            ("tolerating", &slipping),
            "untaint-tolerations",
            "'untaint-tolerations' with binding 'untaint-tolerations-templates': pods in the namespace shop may not \
             tolerate start-up taints: {operator: Exists} tolerates example.com/network;",
        ),
        (
            ("named", &named),
            "untaint-node-names",
            "'untaint-node-names' with binding 'untaint-node-names-templates': pods in the namespace shop may not choose \
             their Node by spec.nodeName (node),",
        ),
    ] {
        let both = workloads(slips).into_iter().zip(workloads(&harmless));
        for ((uri, mut slips), (_, mut harmless)) in both {
            for object in [&mut slips, &mut harmless] {
                object["metadata"]["name"] = json!(name);
            }
            let dry_run = format!("{uri}?dryRun=All");
            let made = scene.post(Caller::Admin, &dry_run, &slips).await;
            made.assert_accepted_with_warning(policy);
            assert!(made.warnings[0].contains(words), "{made:?}");
            let mut made = scene.post(Caller::Admin, uri, &harmless).await;
            made.assert_accepted();

            // Only a Job's template is what it was forever.
            if uri.ends_with("/jobs") {
                continue;
            }
            made.body["spec"] = slips["spec"].clone();
            made.body["template"] = slips["template"].clone();
            made.body
                .as_object_mut()
                .unwrap()
                .retain(|_, field| !field.is_null());
            let object = format!("{uri}/{name}");
            let put = Request::new("", Method::PUT, &object, made.body);
            let changed = scene.ask(Caller::Admin, put).await;
            changed.assert_accepted_with_warning(policy);
            // Whatever changes: its next pods would be refused.
            let label = json!({"metadata": {"labels": {"a": "b"}}});
            let labelled = scene.patch(Caller::Admin, &object, &label).await;
            labelled.assert_accepted_with_warning(policy);
        }
    }
}

#[tokio::test]
async fn a_template_of_an_exempt_account_is_not_warned_of() {
    let Some(scene) = refusing().await else {
        return;
    };
    let mut spec =
        pod(&json!({"nodeName": "node", "tolerations": [{"operator": "Exists"}]}))["spec"].clone();
    spec["serviceAccountName"] = json!(AGENT);
    for (uri, object) in workloads(&spec) {
        let uri = format!("{uri}?dryRun=All");
        scene
            .post(Caller::Admin, &uri, &object)
            .await
            .assert_accepted();
    }
}

#[tokio::test]
async fn kubectl_prints_the_warning() {
    let Some(scene) = refusing().await else {
        return;
    };
    let spec = pod(&json!({"tolerations": [{"operator": "Exists"}]}))["spec"].clone();
    let file = NamedTempFile::new().unwrap();
    let deployment = deployment(&template(&spec));
    std::fs::write(file.path(), deployment.to_string()).unwrap();
    let path = file.path().to_str().unwrap();
    let apply = [
        "apply",
        "--namespace",
        SHOP,
        "--dry-run=server",
        "--warnings-as-errors",
        "--filename",
        path,
    ];
    let error = scene.cluster.kubectl(&apply).await.unwrap_err().to_string();
    assert!(
        error.contains(
            "Warning: Validation failed for ValidatingAdmissionPolicy 'untaint-tolerations'"
        ),
        "{error}"
    );
    assert!(error.contains("error: 1 warning received"), "{error}");
}
