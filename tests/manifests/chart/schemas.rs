//! The fields of the chart's objects, against the schemas of the API server.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};
use tempfile::tempdir;
use testkit::cluster::{Cluster, shared};
use testkit::helm::Helm;

use super::{CHART, as_values, configurations};
use crate::render::list;

/// Writes the schema of every kind into the directory, as the API server publishes it, without fields that it does not
/// know.
async fn write_schemas(cluster: &Cluster, directory: &Path) {
    let spec = cluster.kubectl(&["get", "--raw=/openapi/v2"]).await;
    let mut spec: Value = serde_json::from_str(&spec.unwrap()).unwrap();
    let definitions = spec["definitions"].as_object_mut().unwrap();
    let either = json!({"oneOf": [{"type": "string"}, {"type": "integer"}]});
    definitions["io.k8s.apimachinery.pkg.util.intstr.IntOrString"] = either;
    let mut kinds = Vec::new();
    for (name, definition) in &mut *definitions {
        if definition.get("properties").is_some() {
            definition["additionalProperties"] = false.into();
        }
        for kind in list(&definition["x-kubernetes-group-version-kind"]) {
            let text = |field: &str| kind[field].as_str().unwrap().to_lowercase();
            let group = text("group");
            let group = match group.split('.').next().unwrap() {
                "" => String::new(),
                first => format!("-{first}"),
            };
            let file = format!("{}{group}-{}.json", text("kind"), text("version"));
            kinds.push((file, format!("#/definitions/{name}")));
        }
    }
    let definitions = spec["definitions"].take();
    for (file, reference) in kinds
        .iter()
        .filter(|(file, _)| KINDS.contains(&file.as_str()))
    {
        let schema = json!({"$ref": reference, "definitions": definitions});
        fs::write(directory.join(file), schema.to_string()).unwrap();
    }
}

/// The kinds of the chart's objects, as the files of their schemas.
const KINDS: [&str; 11] = [
    "clusterrole-rbac-v1.json",
    "clusterrolebinding-rbac-v1.json",
    "configmap-v1.json",
    "daemonset-apps-v1.json",
    "flowschema-flowcontrol-v1.json",
    "resourcequota-v1.json",
    "role-rbac-v1.json",
    "rolebinding-rbac-v1.json",
    "serviceaccount-v1.json",
    "validatingadmissionpolicy-admissionregistration-v1.json",
    "validatingadmissionpolicybinding-admissionregistration-v1.json",
];

#[tokio::test]
async fn every_object_of_the_chart_has_only_fields_of_its_kind() {
    let Some(helm) = Helm::get().await else {
        return;
    };
    let Some(cluster) = shared().await else {
        return;
    };
    let directory = tempdir().unwrap();
    write_schemas(cluster, directory.path()).await;
    let schemas = format!(
        "{}/{{{{.ResourceKind}}}}{{{{.KindSuffix}}}}.json",
        directory.path().display()
    );
    let rendered = directory.path().join("rendered.yaml");
    let arguments = ["-strict", "-schema-location", &schemas];
    let arguments = [&arguments[..], &[rendered.to_str().unwrap()]].concat();
    let mut checked = 0;
    for file in configurations() {
        let values = as_values(&file);
        let values = format!("--values={}", values.path().display());
        let set = "--set=flowSchema=true,resourceQuota=true,env[0].name=a,env[0].value=b,\
             tolerationPolicy=Deny,nodeNamePolicy=Warn,monitoring.dashboard=true,\
             updateStrategy.rollingUpdate.maxUnavailable=2";
        let chart = helm
            .run(&["template", "untaint", CHART, &values, set])
            .await;
        // Some gates look at what cannot be mounted.
        let Ok(chart) = chart else { continue };
        checked += 1;
        fs::write(&rendered, &chart).unwrap();
        helm.kubeconform(&arguments).await.unwrap();
        let wrong = chart.replace("hostNetwork: true", "hostNetworks: true");
        fs::write(&rendered, wrong).unwrap();
        helm.kubeconform(&arguments).await.unwrap_err();
    }
    assert!(checked > 15, "{checked}");
}
