//! The workflow of continuous integration has few rights, and runs nothing that can change under its name.

use serde_json::{Value, json};

use crate::{at_root, some, yaml_files};

#[test]
fn a_workflow_reads_the_source_and_runs_only_what_is_pinned() {
    for path in yaml_files(".github/workflows") {
        let text = std::fs::read_to_string(&path).unwrap();
        let workflow: Value = serde_yaml::from_str(&text).unwrap();
        assert_eq!(workflow["permissions"], json!({"contents": "read"}));
        assert!(!text.contains("secrets."), "{}", path.display());
        let jobs: Vec<_> = workflow["jobs"].as_object().unwrap().values().collect();
        for job in some(jobs) {
            assert!(job["permissions"].is_null(), "{job}");
        }
        let uses = text.lines().filter_map(|line| line.split_once("uses: "));
        for (_, action) in some(uses.collect()) {
            let (action, version) = action.split_once(" # v").unwrap();
            let (_, commit) = action.split_once('@').unwrap();
            let is_commit =
                commit.len() == 40 && commit.chars().all(|digit| digit.is_ascii_hexdigit());
            assert!(is_commit && !version.is_empty(), "{action}");
        }
    }
}

#[test]
fn the_workflow_runs_what_everybody_can_run() {
    let text = std::fs::read_to_string(at_root(".github/workflows/ci.yaml")).unwrap();
    assert!(text.contains(" .ci/run\n"));
    assert!(text.contains("make tools dist\n"));
    // The packages that `make dist` asks for.
    let script = std::fs::read_to_string(at_root(".ci/dist")).unwrap();
    assert!(script.contains("package=gcc-aarch64-linux-gnu"));
    assert!(script.contains("libc6-dev-$architecture-cross"));
    assert!(text.contains("gcc-aarch64-linux-gnu") && text.contains("libc6-dev-arm64-cross"));
}
