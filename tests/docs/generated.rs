//! The generated files are up to date. `make generate` writes them.

mod chart;
mod picture;

use std::process::Command;
use std::{env, fs};

use untaint::config;

use crate::{REFERENCE, at_root, owners, reference};

/// The files that `untaint manifests` writes, by its arguments.
const MANIFESTS: [(&str, &str); 6] = [
    (
        "rbac/rbac.yaml",
        "--config examples/cilium.yaml --only rbac",
    ),
    (
        "rbac/policy.yaml",
        "--config examples/cilium.yaml --only policy",
    ),
    (
        "deploy/daemonset/workload.yaml",
        "--config examples/cilium.yaml --only config,workload",
    ),
    (
        "deploy/sidecar/untaint.yaml",
        "--config examples/flannel.yaml --form sidecar --namespace kube-flannel --service-account flannel",
    ),
    (
        "deploy/init-container/untaint.yaml",
        "--config examples/init-container.yaml --form init-container \
         --namespace storage-agent --service-account storage-agent --strict-policy",
    ),
    (
        "deploy/post-start/untaint.yaml",
        "--config examples/post-start.yaml --form post-start --namespace vendor-agent --service-account vendor-agent \
         --strict-policy",
    ),
];

/// Writes the file for `make generate`. Otherwise the file must have this text.
fn assert_generated(path: &str, expected: &str) {
    let path = at_root(path);
    if env::var("UNTAINT_GENERATE").as_deref() == Ok("true") {
        fs::write(path, expected).unwrap();
    } else {
        let found = fs::read_to_string(&path).unwrap();
        let is_up_to_date = found == expected;
        assert!(is_up_to_date, "{}: run `make generate`", path.display());
    }
}

#[test]
fn the_schema_and_the_tables_of_the_reference_are_what_the_types_give() {
    let schema = config::schema::generate();
    let page = fs::read_to_string(at_root(REFERENCE)).unwrap();
    let page = owners::with_table(&reference::with_tables(&page, schema.as_value()));
    assert_generated(
        "src/config/schema.json",
        &format!("{:#}\n", schema.as_value()),
    );
    assert_generated(REFERENCE, &page);
}

#[test]
fn the_manifests_are_what_the_program_writes() {
    for (path, arguments) in MANIFESTS {
        let output = Command::new(env!("CARGO_BIN_EXE_untaint"))
            .arg("manifests")
            .args(arguments.split_whitespace())
            .current_dir(at_root(""))
            .output();
        let output = output.unwrap();
        let errors = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.success(), "{path}: {errors}");
        assert_generated(path, &String::from_utf8(output.stdout).unwrap());
    }
}
