//! The chart as a dependency of the chart of another program, which has untaint in its pods.

use std::fs;
use std::process::Command;

use serde_json::Value;
use tempfile::{NamedTempFile, TempDir};
use testkit::helm::Helm;

use super::CHART;
use crate::render::{Objects, ROOT, written};

const ABOUT: &str = "apiVersion: v2
name: cni
version: 1.0.0
dependencies:
- {name: untaint, version: 0.1.0, condition: untaint.enabled}
";
const POD: &str = r#"
apiVersion: v1
kind: Pod
metadata: {name: cni}
spec:
  {{- with .Subcharts.untaint }}
  initContainers:
  {{- include "untaint.container" . | nindent 2 }}
  volumes:
  {{- include "untaint.volumes" . | nindent 2 }}
  {{- end }}
"#;

/// A chart that depends on that of untaint, with these values for it.
fn parent(values: &str) -> TempDir {
    let directory = TempDir::new().unwrap();
    let write = |name: &str, text: &str| {
        let path = directory.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    };
    let indented = values.replace('\n', "\n  ");
    write("Chart.yaml", ABOUT);
    write("values.yaml", &format!("untaint:\n  {indented}\n"));
    write("templates/pod.yaml", POD);
    fs::create_dir(directory.path().join("charts")).unwrap();
    let mut copy = Command::new("cp");
    let copied = copy
        .args(["-R", CHART])
        .arg(directory.path().join("charts/untaint"));
    assert!(copied.status().unwrap().success());
    directory
}

#[tokio::test]
async fn the_chart_of_another_program_includes_the_container_that_untaint_manifests_writes_for_it()
{
    let Some(helm) = Helm::get().await else {
        return;
    };
    let example = fs::read_to_string(format!("{ROOT}/examples/cilium.yaml")).unwrap();
    for form in ["sidecar", "init-container"] {
        let values = format!(
            "{example}\nenabled: true\nform: {form}\nserviceAccount: {{name: cni-node}}\nresources: {{limits: {{memory: 1Gi}}}}\n"
        );
        let parent = parent(&values);
        let place = parent.path().to_str().unwrap();
        let chart = helm
            .run(&["template", "cni", place, "--namespace=cni"])
            .await
            .unwrap();
        let chart = Objects(serde_yaml::from_multiple(&chart).unwrap());
        let config = NamedTempFile::new().unwrap();
        let map = chart.one("ConfigMap")["data"]["config.yaml"]
            .as_str()
            .unwrap();
        fs::write(&config, map).unwrap();
        let config = format!("--config={}", config.path().display());
        let form = format!("--form={form}");
        let of_cni = [
            "--namespace=cni",
            "--service-account=cni-node",
            "--patch=cni",
        ];
        let after: &[&str] = if form.ends_with("container") {
            &["--after=a"]
        } else {
            &[]
        };
        let patch = written(&[&[config.as_str(), &form], &of_cni[..], after].concat()).unwrap();
        let mut patch: Value = serde_yaml::from_str(&patch).unwrap();
        let expected = &mut patch["spec"]["template"]["spec"];
        let containers = expected["initContainers"].as_array().unwrap();
        let mut container = containers.last().unwrap().clone();
        container["resources"] = serde_json::json!({"limits": {"memory": "1Gi"}});
        let pod = &chart.one("Pod")["spec"];
        assert_eq!(
            pod["initContainers"],
            Value::from(vec![container]),
            "{form}"
        );
        assert_eq!(pod["volumes"], expected["volumes"], "{form}");
        let disabled = ["template", "cni", place, "--set=untaint.enabled=false"];
        let disabled = helm.run(&disabled).await.unwrap();
        let disabled = Objects(serde_yaml::from_multiple(&disabled).unwrap());
        assert_eq!(disabled.0.len(), 1);
        assert!(disabled.one("Pod")["spec"].is_null());
        // The roles, the policy and the ConfigMap are there, and no pods of its own.
        assert_eq!(chart.all("DaemonSet").len(), 0, "{form}");
        assert!(!chart.all("ValidatingAdmissionPolicy").is_empty(), "{form}");
    }
}

#[tokio::test]
async fn the_container_of_a_form_that_has_none_is_refused() {
    let Some(helm) = Helm::get().await else {
        return;
    };
    let example = fs::read_to_string(format!("{ROOT}/examples/cilium.yaml")).unwrap();
    let parent = parent(&example);
    let place = parent.path().to_str().unwrap();
    let said = helm
        .run(&["template", "cni", place])
        .await
        .unwrap_err()
        .to_string();
    assert!(said.contains("form: untaint.container is for"), "{said}");
}
