//! Labels, secrets, nodes and an affinity that the user names.

use serde_json::{Value, json};
use testkit::cluster::shared;

use crate::render::{FORMS, Objects, list, written};

const EXAMPLE: &str = "--config=examples/storage-agent.yaml";

#[test]
fn a_label_is_on_every_object_and_its_pods_and_in_no_selector() {
    for form in FORMS {
        let arguments = [
            EXAMPLE,
            "--form",
            form,
            "--service-account=agent",
            "--label=team=a,example.com/cost-centre=12",
            "--label=empty=",
        ];
        let objects = Objects::written(&arguments);
        let plain = Objects::written(&arguments[..4]);
        assert_eq!(objects.0.len(), plain.0.len());
        let spec = &objects.one("DaemonSet")["spec"];
        for object in objects.0.iter().chain([&spec["template"]]) {
            let labels = &object["metadata"]["labels"];
            assert_eq!(labels["team"], "a", "{object}");
            assert_eq!(labels["example.com/cost-centre"], "12", "{object}");
            assert_eq!(labels["empty"], "", "{object}");
        }
        assert_eq!(spec["selector"], plain.one("DaemonSet")["spec"]["selector"]);
    }
}

#[test]
fn a_label_or_node_that_cannot_be_is_refused_with_the_remedy() {
    let other = |key: &str| format!("untaint sets the label {key} itself: use another key");
    for (option, expected) in [
        (
            "--label=app.kubernetes.io/name=x",
            other("app.kubernetes.io/name"),
        ),
        (
            "--label=app.kubernetes.io/instance=x",
            other("app.kubernetes.io/instance"),
        ),
        (
            "--label=app.kubernetes.io/part-of=x",
            other("app.kubernetes.io/part-of"),
        ),
        (
            "--label=pod-security.kubernetes.io/enforce=restricted",
            other("pod-security.kubernetes.io/enforce"),
        ),
        ("--label=team", "must be KEY=VALUE".into()),
        ("--label==a", "the KEY must be a qualified name".into()),
        (
            "--label=team=a b",
            "the VALUE must be empty or at most 63 letters".into(),
        ),
        ("--label=team=a,team=b", "--label has team twice".into()),
        (
            "--node-selector=pool=a,pool=b",
            "--node-selector has pool twice".into(),
        ),
        (
            "--node-selector=kubernetes.io/os=windows",
            "untaint runs on Linux only".into(),
        ),
        (
            "--affinity=nodeAffinity",
            "must be a mapping with only nodeAffinity, podAffinity, podAntiAffinity".into(),
        ),
        ("--affinity={}", "must be a mapping with only".into()),
        (
            "--affinity={nodeSelector: {}}",
            "must be a mapping with only".into(),
        ),
        ("--affinity={nodeAffinity: [}", "line 1 column".into()),
        (
            "--image-pull-secret=A",
            "must be at most 253 lower-case letters".into(),
        ),
    ] {
        let error = written(&[EXAMPLE, option]).unwrap_err();
        assert!(error.contains(&expected), "{option}: {error}");
    }
    // A label of the same prefix that untaint does not set.
    written(&[EXAMPLE, "--label=app.kubernetes.io/managed-by=x"]).unwrap();
}

#[test]
fn the_pods_of_every_form_and_a_patch_name_the_secrets() {
    let secrets = ["--image-pull-secret=a,b.c", "--image-pull-secret=d"];
    let expected = json!([{"name": "a"}, {"name": "b.c"}, {"name": "d"}]);
    for form in FORMS {
        let arguments = [EXAMPLE, "--form", form, "--service-account=agent"];
        let objects = Objects::written(&[&arguments[..], &secrets].concat());
        assert_eq!(objects.pod()["imagePullSecrets"], expected, "{form}");
        assert!(Objects::written(&arguments).pod()["imagePullSecrets"].is_null());
    }
    let patch = ["--form=sidecar", "--service-account=agent", "--patch=agent"];
    let patch = Objects::written(&[&[EXAMPLE][..], &patch, &secrets].concat());
    assert_eq!(patch.pod()["imagePullSecrets"], expected);
}

#[test]
fn the_pods_of_every_form_have_the_affinity_of_the_user_instead_of_that_of_the_manifests() {
    let affinity = "--affinity={nodeAffinity: {preferredDuringSchedulingIgnoredDuringExecution: []}, podAffinity: {}}";
    let expected = json!({"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": []}, "podAffinity": {}});
    for form in FORMS {
        let arguments = [EXAMPLE, "--form", form, "--service-account=agent", affinity];
        let objects = Objects::written(&arguments);
        assert_eq!(objects.pod()["affinity"], expected, "{form}");
        let plain = Objects::written(&arguments[..4]);
        assert!(
            plain.pod()["affinity"].to_string().contains("fargate"),
            "{form}"
        );
    }
}

/// The `nodeSelector` of the pods for rules with these fields each.
fn selector(rules: &[&str], form: &str, options: &[&str]) -> Result<Value, String> {
    let rules = rules.iter().enumerate().map(|(nth, fields)| {
        format!(
            "- {{name: r{nth}, taint: {{key: example.com/{nth}, effect: NoSchedule}}, gates: [{{name: g, httpGet: {{port: 1, path: /}}}}], {fields}}}\n"
        )
    });
    let text = format!(
        "apiVersion: untaint/v1alpha1\nkind: UntaintConfiguration\nrules:\n{}",
        rules.collect::<String>()
    );
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), text).unwrap();
    let config = file.path().to_str().unwrap();
    let arguments = [
        "--config",
        config,
        "--form",
        form,
        "--service-account=agent",
    ];
    let yaml = written(&[&arguments[..], options].concat())?;
    let objects = Objects(serde_yaml::from_multiple(&yaml).unwrap());
    let mut selector = objects.pod()["nodeSelector"].clone();
    let os = selector.as_object_mut().unwrap().remove("kubernetes.io/os");
    assert_eq!(os.unwrap(), "linux");
    Ok(selector)
}

#[test]
fn the_pods_run_on_the_nodes_that_every_rule_selects_and_that_the_user_names() {
    let gpu = "nodeSelector: {pool: gpu, zone: a}";
    let other_zone = "nodeSelector: {pool: gpu, zone: b}";
    let dry = "nodeSelector: {pool: gpu}, dryRun: true";
    let retaint = "nodeSelector: {pool: gpu}, retaint: {after: 30s}";
    let linux = "nodeSelector: {kubernetes.io/os: linux, truth: 'true'}";
    let none = json!({});
    for (rules, form, options, expected) in [
        (
            &[gpu][..],
            "daemonset",
            &[][..],
            json!({"pool": "gpu", "zone": "a"}),
        ),
        (
            &[gpu, other_zone, dry],
            "daemonset",
            &[],
            json!({"pool": "gpu"}),
        ),
        (&[gpu, ""], "daemonset", &[], none.clone()),
        (&[linux], "daemonset", &[], json!({"truth": "true"})),
        // The agent removes what it has put back also where the rule selects the Node no longer.
        (&[gpu, retaint], "daemonset", &[], none.clone()),
        // The pods of another program run where that program must.
        (&[gpu], "sidecar", &[], none),
        (
            &[gpu],
            "daemonset",
            &["--node-selector=zone=a,tier=1"],
            json!({"pool": "gpu", "zone": "a", "tier": "1"}),
        ),
        (
            &[""],
            "sidecar",
            &["--node-selector=tier=1"],
            json!({"tier": "1"}),
        ),
        (
            &[retaint],
            "daemonset",
            &["--node-selector=pool=b"],
            json!({"pool": "b"}),
        ),
    ] {
        let found = selector(rules, form, options).unwrap();
        assert_eq!(found, expected, "{rules:?} {form} {options:?}");
    }
    let error = selector(&[gpu, dry], "daemonset", &["--node-selector=pool=b"]).unwrap_err();
    let expected = "--node-selector pool=b: every rule has pool: gpu in nodeSelector";
    assert!(error.contains(expected), "{error}");
}

/// A DaemonSet's selector cannot change.
#[tokio::test]
async fn labels_can_be_added_to_an_installation_that_is_there() {
    let Some(cluster) = shared().await else {
        return;
    };
    cluster
        .kubectl(&["create", "namespace", "labelled"])
        .await
        .unwrap();
    let arguments = [EXAMPLE, "--namespace=labelled"];
    cluster.apply(&written(&arguments).unwrap()).await.unwrap();
    let more = [
        "--label=team=a",
        "--image-pull-secret=a",
        "--node-selector=pool=a",
    ];
    let text = written(&[&arguments[..], &more].concat()).unwrap();
    cluster.apply(&text).await.unwrap();
    let arguments = [
        "--namespace=labelled",
        "get",
        "daemonset/untaint",
        "--output=json",
    ];
    let found: Value = serde_json::from_str(&cluster.kubectl(&arguments).await.unwrap()).unwrap();
    assert_eq!(found["spec"]["template"]["metadata"]["labels"]["team"], "a");
    assert_eq!(
        list(&found["spec"]["template"]["spec"]["imagePullSecrets"]).len(),
        1
    );
}
