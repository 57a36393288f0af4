//! The Helm chart, against `untaint manifests`.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use tempfile::{NamedTempFile, tempdir};
use testkit::cluster::{Cluster, fresh, shared};
use testkit::helm::Helm;
use untaint::config;

use crate::render::{Objects, ROOT, list, written};

const CHART: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/deploy/chart");

/// Sets of values of the chart, and the options of `untaint manifests` that say the same.
const OPTIONS: [(&[&str], &[&str]); 7] = [
    (&["untaint", "--namespace=untaint"], &[]),
    (
        &["my-untaint", "--namespace=kube-system"],
        &["--namespace=kube-system", "--service-account=my-untaint"],
    ),
    (
        &[
            "untaint",
            "--namespace=1",
            "--set-string=serviceAccount.name=1e3",
        ],
        &["--namespace=1", "--service-account=1e3"],
    ),
    (
        &[
            "untaint",
            "--namespace=untaint",
            "--set=checkNodeUid=true,exactTolerations=true,seLinuxType=spc_t",
        ],
        &[
            "--check-node-uid",
            "--exact-tolerations",
            "--selinux-type=spc_t",
        ],
    ),
    (
        &[
            "untaint",
            "--namespace=untaint",
            "--set=labels.team=a,nodeSelector.pool=b,flowSchema=true,imagePullSecrets[0].name=c",
        ],
        &[
            "--label=team=a",
            "--node-selector=pool=b",
            "--flow-schema",
            "--image-pull-secret=c",
        ],
    ),
    (
        &[
            "untaint",
            "--namespace=cni",
            "--set=form=sidecar,serviceAccount.name=cni-node",
        ],
        &[
            "--form=sidecar",
            "--namespace=cni",
            "--service-account=cni-node",
        ],
    ),
    (
        &[
            "untaint",
            "--namespace=cni",
            "--set=form=init-container,strictPolicy=true,serviceAccount.name=cni-node",
        ],
        &[
            "--form=init-container",
            "--strict-policy",
            "--namespace=cni",
            "--service-account=cni-node",
        ],
    ),
];

/// The examples, and configurations that have every field, as values of the chart.
fn configurations() -> Vec<PathBuf> {
    let directories = ["examples", "tests/fixtures/config/valid"];
    let entries = directories.map(|directory| fs::read_dir(format!("{ROOT}/{directory}")).unwrap());
    let files = entries.into_iter().flatten();
    let files = files.map(|entry| entry.unwrap().path());
    let is_configuration = |file: &PathBuf| file.extension().is_some_and(|kind| kind == "yaml");
    let files: Vec<_> = files.filter(is_configuration).collect();
    assert!(files.len() > 20, "{files:?}");
    files
}

/// The file with a directory that can be mounted in a pod, and with quotes where Helm, which reads YAML 1.1, would read no
/// string.
fn as_values(file: &Path) -> NamedTempFile {
    let mut text = fs::read_to_string(file).unwrap();
    for (written, instead) in [
        ("/opt/cni/bin, /bin]", "/opt/cni/bin, /opt/bin]"),
        (" 1_000,", " \"1_000\","),
        (" yes,", " \"yes\","),
    ] {
        text = text.replace(written, instead);
    }
    let values = NamedTempFile::new().unwrap();
    fs::write(&values, text).unwrap();
    values
}

#[tokio::test]
async fn the_chart_makes_the_objects_of_untaint_manifests_from_every_configuration() {
    let Some(helm) = Helm::get().await else {
        return;
    };
    for file in configurations() {
        let values = as_values(&file);
        let original = fs::read_to_string(&values).unwrap();
        let of_chart = format!("--values={}", values.path().display());
        for (options, of_manifests) in OPTIONS {
            let place = format!("{} {options:?}", file.display());
            let arguments = [&["template"], options, &[CHART, &of_chart]].concat();
            let is_daemon_set = !of_manifests
                .iter()
                .any(|option| option.starts_with("--form"));
            let only = if is_daemon_set {
                "--only=rbac,policy,config,workload"
            } else {
                "--only=rbac,policy,config"
            };
            let manifests = |configuration: &NamedTempFile| {
                let config = format!("--config={}", configuration.path().display());
                written(&[&[config.as_str(), only], of_manifests].concat())
            };
            let chart = match (helm.run(&arguments).await, manifests(&values)) {
                (Ok(chart), Ok(_)) => chart,
                (Err(error), Err(expected)) => {
                    let error = error.to_string();
                    assert!(error.contains(expected.trim_end()), "{place}: {error}");
                    continue;
                }
                (chart, manifests) => panic!("{place}: {chart:?}, {manifests:?}"),
            };
            assert_eq!(helm.run(&arguments).await.unwrap(), chart, "{place}");
            let chart = Objects(serde_yaml::from_multiple(&chart).unwrap());
            let text = chart.one("ConfigMap")["data"]["config.yaml"].as_str();
            let text = text.unwrap();
            let shown = |text: &str| config::show(&config::parse(text).unwrap());
            assert_eq!(shown(text), shown(&original), "{place}");

            let configuration = NamedTempFile::new().unwrap();
            fs::write(&configuration, text).unwrap();
            let expected = manifests(&configuration).unwrap();
            let expected: Vec<Value> = serde_yaml::from_multiple(&expected).unwrap();
            let is_made = |object: &Value| object["kind"] != "Namespace";
            let expected = expected.into_iter().filter(is_made).collect();
            let [chart, expected] = [chart.0, expected].map(sorted);
            for (found, expected) in chart.iter().zip(&expected) {
                assert_eq!(found, expected, "{place}");
            }
            assert_eq!(chart.len(), expected.len(), "{place}");
        }
    }
}

fn sorted(mut objects: Vec<Value>) -> Vec<Value> {
    objects.sort_by_key(|object| format!("{} {}", object["kind"], object["metadata"]["name"]));
    objects
}

#[tokio::test]
async fn a_wrong_value_is_refused_with_its_field() {
    let Some(helm) = Helm::get().await else {
        return;
    };
    let example = format!("--values={ROOT}/examples/cilium.yaml");
    for (values, expected) in [
        ("rules=null", "rules: there are none"),
        ("rules[0].taints=x", "/rules/0"),
        ("rules[0].gates[0].file.path=x", "/rules/0/gates/0"),
        ("rules[0].stableFor=soon", "/rules/0/stableFor"),
        ("form=pod", "/form"),
        ("image.digest=latest", "/image/digest"),
        ("resource=1", "resource"),
    ] {
        let set = format!("--set={values}");
        let arguments = ["template", "untaint", CHART, &example, &set];
        let said = helm.run(&arguments).await.unwrap_err().to_string();
        assert!(said.contains(expected), "{values}: {said}");
    }
}

#[tokio::test]
async fn a_release_is_installed_upgraded_rolled_back_and_uninstalled() {
    let Some(helm) = Helm::get().await else {
        return;
    };
    let Some(cluster) = fresh(&[]).await else {
        return;
    };
    let kubeconfig = format!("--kubeconfig={}", cluster.admin_kubeconfig().display());
    let run = async |arguments: &[&str]| {
        let place = [kubeconfig.as_str(), "--namespace=chart"];
        helm.run(&[arguments, &place].concat()).await.unwrap()
    };
    let installed = async || {
        let kinds = "configmap,serviceaccount,daemonset,clusterrole,clusterrolebinding,role,rolebinding,\
             validatingadmissionpolicy,validatingadmissionpolicybinding";
        let selector = "--selector=app.kubernetes.io/name=untaint,app.kubernetes.io/instance=untaint.chart.chart-untaint";
        let arguments = ["get", kinds, "--all-namespaces", selector, "--output=name"];
        cluster.kubectl(&arguments).await.unwrap()
    };
    // Helm validates before it sends anything.
    let wrong = "--set=rules[0].gates[0].file.path=relative";
    let example = format!("--values={ROOT}/examples/cilium.yaml");
    let arguments = ["install", "chart", CHART, &example, wrong, &kubeconfig];
    let said = helm.run(&arguments).await.unwrap_err().to_string();
    assert!(said.contains("/rules/0/gates/0/file/path"), "{said}");
    assert_eq!(installed().await, "");
    let [cilium, calico] =
        ["cilium", "calico"].map(|name| format!("--values={ROOT}/examples/{name}.yaml"));
    let notes = run(&["install", "chart", CHART, "--create-namespace", &cilium]).await;
    assert!(notes.contains("operator.removeNodeTaints=false"), "{notes}");
    let first = installed().await;
    assert_eq!(first.lines().count(), 7, "{first}");
    run(&["upgrade", "chart", CHART, &calico]).await;
    let second = installed().await;
    assert_ne!(first, second);
    run(&["rollback", "chart", "1"]).await;
    assert_eq!(installed().await, first);
    run(&["uninstall", "chart"]).await;
    assert_eq!(installed().await, "");
}

#[tokio::test]
async fn the_chart_passes_the_strict_lint_and_its_package_is_small() {
    let Some(helm) = Helm::get().await else {
        return;
    };
    let example = format!("--values={ROOT}/examples/cilium.yaml");
    let lint = ["lint", "--strict", CHART, &example];
    helm.run(&lint).await.unwrap();
    let directory = tempdir().unwrap();
    let destination = directory.path().to_str().unwrap();
    let package = ["package", CHART, "--destination", destination];
    helm.run(&package).await.unwrap();
    let mut packages = fs::read_dir(directory.path()).unwrap();
    let size = packages.next().unwrap().unwrap().metadata().unwrap().len();
    assert!(size <= 25 * 1024, "{size} bytes");
}

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
const KINDS: [&str; 10] = [
    "clusterrole-rbac-v1.json",
    "clusterrolebinding-rbac-v1.json",
    "configmap-v1.json",
    "daemonset-apps-v1.json",
    "flowschema-flowcontrol-v1.json",
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
    for file in configurations() {
        let values = as_values(&file);
        let values = format!("--values={}", values.path().display());
        let set = "--set=flowSchema=true,env[0].name=a,env[0].value=b";
        let chart = helm
            .run(&["template", "untaint", CHART, &values, set])
            .await;
        // Some gates look at what cannot be mounted.
        let Ok(chart) = chart else { continue };
        fs::write(&rendered, &chart).unwrap();
        helm.kubeconform(&arguments).await.unwrap();
        let wrong = chart.replace("hostNetwork: true", "hostNetworks: true");
        fs::write(&rendered, wrong).unwrap();
        helm.kubeconform(&arguments).await.unwrap_err();
    }
}
