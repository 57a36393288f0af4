//! The Helm chart, against `untaint manifests`.

mod library;
mod monitoring;
mod release;
mod schemas;

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;
use tempfile::NamedTempFile;
use testkit::helm::Helm;
use untaint::config;

use crate::render::{Objects, ROOT, written};

const CHART: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/deploy/chart");

/// Sets of values of the chart, and the options of `untaint manifests` that say the same.
const OPTIONS: [(&[&str], &[&str]); 9] = [
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
            "--set-json=affinity={\"podAffinity\":{}}",
        ],
        &[
            "--label=team=a",
            "--node-selector=pool=b",
            "--flow-schema",
            "--image-pull-secret=c",
            "--affinity={podAffinity: {}}",
        ],
    ),
    (
        &[
            "untaint",
            "--namespace=untaint",
            "--set=tolerationPolicy=Deny,nodeNamePolicy=Warn,exempt.namespaces[0]=b,exempt.serviceAccounts={b:c.d,a:b,a:b}",
            "--set-string=exempt.namespaces[1]=1",
        ],
        &[
            "--toleration-policy=Deny",
            "--node-name-policy=Warn",
            "--exempt-namespace=b,1",
            "--exempt-service-account=b:c.d,a:b",
        ],
    ),
    (
        &[
            "untaint",
            "--namespace=a",
            "--set=tolerationPolicy=Warn,taintNewNodes=All",
        ],
        &[
            "--namespace=a",
            "--service-account=untaint",
            "--toleration-policy=Warn",
            "--taint-new-nodes=All",
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
                    // The chart names the value instead of the option.
                    let (option, rest) = expected.split_once(' ').unwrap();
                    let expected = if option.starts_with("--") {
                        rest
                    } else {
                        &expected
                    };
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
