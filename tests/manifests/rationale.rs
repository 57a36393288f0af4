//! The text for policy exceptions in docs/security.md.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::Value;
use testkit::cluster::fresh;
use testkit::skip::skip;

use crate::render::{Objects, ROOT, list};

fn section() -> String {
    let page = fs::read_to_string(format!("{ROOT}/docs/security.md")).unwrap();
    let (_, section) = page.split_once("\n## For a policy exception\n").unwrap();
    section.split_once("\n## ").unwrap().0.to_owned()
}

/// The pointers and values of the table.
fn claims() -> Vec<(String, Value)> {
    let section = section();
    let rows = section.lines().filter_map(|line| line.strip_prefix("| `/"));
    let claims = rows.map(|row| {
        let mut cells = row.split(" | ");
        let field = cells.next().unwrap().trim_matches('`');
        let value = cells.next().unwrap().trim_matches('`');
        let value = serde_json::from_str(value).unwrap();
        (format!("/{field}"), value)
    });
    claims.collect()
}

#[test]
fn the_rationale_has_the_fields_of_the_pods_with_their_values_and_leaves_none_out() {
    let objects = Objects::written(&["--config=examples/cilium.yaml"]);
    let pod = objects.pod();
    let claims = claims();
    for (field, value) in &claims {
        assert_eq!(pod.pointer(field), Some(value), "{field}");
    }
    let claimed: BTreeSet<_> = claims.iter().map(|(field, _)| field.as_str()).collect();
    let is_claimed = |field: String| assert!(claimed.contains(field.as_str()), "{field}");
    let [container] = list(&pod["containers"]) else {
        panic!("{pod}");
    };
    let context = container["securityContext"].as_object().unwrap();
    for field in context.keys() {
        is_claimed(format!("/containers/0/securityContext/{field}"));
    }
    for (index, volume) in list(&pod["volumes"]).iter().enumerate() {
        if !volume["hostPath"].is_null() {
            is_claimed(format!("/volumes/{index}/hostPath/path"));
        }
    }
    for index in 0..list(&container["volumeMounts"]).len() {
        is_claimed(format!("/containers/0/volumeMounts/{index}/readOnly"));
    }
    // What a reviewer need not think about.
    let harmless = [
        "affinity",
        "containers",
        "nodeSelector",
        "serviceAccountName",
        "terminationGracePeriodSeconds",
        "volumes",
    ];
    for field in pod.as_object().unwrap().keys() {
        if !harmless.contains(&field.as_str()) {
            is_claimed(format!("/{field}"));
        }
    }
    assert!(container["ports"].is_null());
}

/// The definition of a kind in the Go module of its project. `None` if it cannot be fetched.
fn definition(module: &str, path: &str) -> Option<String> {
    let output = Command::new("go")
        .args(["mod", "download", "-json", module])
        .current_dir(std::env::temp_dir())
        .output();
    let output = output.ok().filter(|output| output.status.success())?;
    let answer: Value = serde_json::from_slice(&output.stdout).ok()?;
    let directory = answer["Dir"].as_str()?;
    fs::read_to_string(Path::new(directory).join(path)).ok()
}

fn example(name: &str) -> String {
    let section = section();
    let (_, text) = section.split_once(&format!("# {name}\n")).unwrap();
    text.split_once("```").unwrap().0.to_owned()
}

/// Strictly: an unknown field is an error.
#[tokio::test]
async fn the_exceptions_fit_the_definitions_of_their_projects() {
    let Some(cluster) = fresh(&[]).await else {
        return;
    };
    for (file, module, path, namespace, resource) in [
        (
            "kyverno.yaml",
            "github.com/kyverno/kyverno@v1.15.2",
            "config/crds/kyverno/kyverno.io_policyexceptions.yaml",
            "untaint",
            "policyexceptions.kyverno.io",
        ),
        (
            "gatekeeper.yaml",
            "github.com/open-policy-agent/gatekeeper/v3@v3.20.1",
            "config/crd/bases/config.gatekeeper.sh_configs.yaml",
            "gatekeeper-system",
            "configs.config.gatekeeper.sh",
        ),
    ] {
        let Some(definition) = definition(module, path) else {
            skip(&format!("cannot fetch the Go module {module}"));
            continue;
        };
        let definition_file = tempfile::NamedTempFile::new().unwrap();
        fs::write(definition_file.path(), definition).unwrap();
        // Too long for the annotation of a client-side apply.
        let file_name = definition_file.path().to_str().unwrap();
        let arguments = ["create", "--filename", file_name];
        cluster.kubectl(&arguments).await.unwrap();
        let established = format!("customresourcedefinition/{resource}");
        let arguments = [
            "wait",
            "--for=condition=Established",
            "--timeout=60s",
            &established,
        ];
        cluster.kubectl(&arguments).await.unwrap();
        let arguments = ["create", "namespace", namespace];
        cluster.kubectl(&arguments).await.unwrap();
        let example = example(file);
        let apply = async |text: &str| {
            let file = tempfile::NamedTempFile::new().unwrap();
            fs::write(file.path(), text).unwrap();
            let file = file.path().to_str().unwrap();
            let arguments = ["apply", "--validate=strict", "--filename", file];
            cluster.kubectl(&arguments).await
        };
        apply(&example).await.unwrap();
        let wrong = example.replace("spec:\n", "spec:\n  unknown: true\n");
        let error = apply(&wrong).await.unwrap_err().to_string();
        assert!(error.contains("unknown field \"spec.unknown\""), "{error}");
    }
}
