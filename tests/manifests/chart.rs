//! The Helm chart, against `untaint manifests`.

mod library;
mod monitoring;
mod release;
mod schemas;

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
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
    let mut compared = [0; OPTIONS.len()];
    for file in configurations() {
        let values = as_values(&file);
        let original = fs::read_to_string(&values).unwrap();
        let of_chart = format!("--values={}", values.path().display());
        for (nth, (options, of_manifests)) in OPTIONS.into_iter().enumerate() {
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
            if nth == 0 {
                assert_eq!(helm.run(&arguments).await.unwrap(), chart, "{place}");
            }
            let mut chart = Objects(serde_yaml::from_multiple(&chart).unwrap());
            for object in &mut chart.0 {
                // Only Helm needs to keep it.
                if object["kind"] == "ConfigMap" {
                    let annotations = object["metadata"].as_object_mut().unwrap();
                    let annotations = annotations.remove("annotations").unwrap();
                    assert_eq!(annotations, json!({"helm.sh/resource-policy": "keep"}));
                }
            }
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
            compared[nth] += 1;
        }
    }
    // The others are refused both ways, with the same message.
    assert!(compared.iter().all(|count| *count >= 6), "{compared:?}");
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
        ("form=null", "form: is null"),
        ("form=sidecar", "serviceAccount.name is missing"),
        (
            "serviceAccount.create=false",
            "serviceAccount.name is missing",
        ),
        ("serviceAccount.name=a'b", "/serviceAccount/name"),
        ("labels.a=b c", "/labels/a"),
        (
            "monitoring.labels.app\\.kubernetes\\.io/name=x",
            "monitoring.labels: untaint sets",
        ),
        (
            "nodeSelector.kubernetes\\.io/os=windows",
            "untaint runs on Linux only",
        ),
        ("env[0].name=NODE_NAME", "untaint sets NODE_NAME itself"),
        ("env[0].value=x", "/env/0"),
        ("affinity.a=1", "/affinity"),
        (
            "exempt.namespaces={a}",
            "there is no policy to be exempt from",
        ),
        (
            "exempt.serviceAccounts={a:b'},tolerationPolicy=Warn",
            "/exempt/serviceAccounts/0",
        ),
    ] {
        let set = format!("--set={values}");
        let arguments = ["template", "untaint", CHART, &example, &set];
        let said = helm.run(&arguments).await.unwrap_err().to_string();
        assert!(said.contains(expected), "{values}: {said}");
    }
}

/// Rules with these fields.
fn rules(each: impl Iterator<Item = String>) -> NamedTempFile {
    let rules: Vec<String> = each.collect();
    let file = NamedTempFile::new().unwrap();
    let head = "apiVersion: untaint/v1alpha1\nkind: UntaintConfiguration\nrules:\n";
    fs::write(&file, format!("{head}{}", rules.concat())).unwrap();
    file
}

/// Beyond what the examples have.
#[tokio::test]
async fn the_chart_and_untaint_manifests_agree_about_paths_labels_and_sizes() {
    let Some(helm) = Helm::get().await else {
        return;
    };
    let of_path = |path: &str| {
        rules(std::iter::once(format!(
            "- {{name: a, taint: {{key: example.com/a}}, gates: [{{name: g, file: {{path: {path}}}}}]}}\n"
        )))
    };
    let paths = [
        "/proc/1/comm",
        "/proc/self/x",
        "/proc/kcore",
        "/proc/kcorex",
        "/proc/uptime",
        "/sys/fs/bpf/x",
        "/sys/fs/x",
        "/dev/disk/by-id",
        "/dev/diskx/y",
        "/etc/x",
        "/run/x/y",
        "/var/run/secrets/kubernetes.io/x",
        "/var/run/secrets/kubernetes.iox/y",
    ];
    let selecting = |labels: &[&str]| {
        rules(labels.iter().enumerate().map(|(nth, labels)| {
            format!("- {{name: r{nth}, taint: {{key: example.com/a{nth}}}, gates: [], nodeSelector: {labels}}}\n")
        }))
    };
    let long = (0..900).map(|nth| {
        format!(
            "- {{name: r{nth}, taint: {{key: {:0>50}.example.com/{nth:0>60}, effect: NoSchedule}}, gates: []}}\n",
            "a"
        )
    });
    let mut configurations: Vec<_> = paths.into_iter().map(of_path).collect();
    configurations.extend([
        selecting(&["{a: ''}", "{}"]),
        selecting(&["{a: ''}", "{a: ''}"]),
        selecting(&["{a: b}", "{a: ''}"]),
        rules(long),
    ]);
    for (nth, file) in configurations.iter().enumerate() {
        let values = format!("--values={}", file.path().display());
        let chart = helm
            .run(&["template", "untaint", CHART, "--namespace=untaint", &values])
            .await;
        let manifests = written(&[&format!("--config={}", file.path().display())]);
        match (chart, manifests) {
            (Ok(chart), Ok(manifests)) => {
                let pod = |text: &str| {
                    let objects = Objects(serde_yaml::from_multiple(text).unwrap());
                    let pod = objects.pod();
                    let mounts = pod["containers"][0]["volumeMounts"].clone();
                    [pod["nodeSelector"].clone(), mounts]
                };
                assert_eq!(pod(&chart), pod(&manifests), "{nth}");
            }
            (Err(chart), Err(manifests)) => {
                // The lengths are counted a little differently.
                let reason = manifests.split(" has ").next().unwrap().trim_end();
                let chart = chart.to_string();
                assert!(chart.contains(reason), "{nth}: {chart} {manifests}");
            }
            (chart, manifests) => panic!("{nth}: {chart:?} {manifests:?}"),
        }
    }
}
