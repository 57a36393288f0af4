//! Single files that are mounted, and a container without `/dev`.

use std::fs;
use std::path::Path;
use std::process::Command;

use testkit::agent::{Agent, write_configuration};

use crate::mounts::program_seeing;

/// A rule with these gates.
fn rule(gates: &str) -> String {
    format!("- name: r\n  taint: {{key: example.com/t}}\n  gates:\n{gates}")
}

#[tokio::test]
async fn a_mounted_file_that_is_deleted_on_the_host_closes_its_gate_with_the_remedy() {
    let dir = tempfile::tempdir().unwrap();
    let [source, mounted, config] =
        ["source", "mounted", "config.yaml"].map(|name| dir.path().join(name));
    fs::write(&source, "").unwrap();
    fs::write(&mounted, "").unwrap();
    let gates = format!(
        "  - {{name: mounted, file: {{path: {}}}}}\n  - {{name: never, file: {{path: /no/such/file}}}}\n",
        mounted.display()
    );
    write_configuration(&config, &rule(&gates)).unwrap();
    let Some(command) = program_seeing(&[(&source, mounted.to_str().unwrap())]) else {
        return;
    };
    let (program, arguments) = command.split_first().unwrap();
    let mut arguments: Vec<_> = arguments.iter().map(String::as_str).collect();
    arguments.extend(["wait", "--config", config.to_str().unwrap()]);
    let agent = Agent::start(program, &arguments, &[]).unwrap();
    let is = |line: &serde_json::Value, state| line["gate"] == "mounted" && line["state"] == state;
    agent.wait_for_log(|line| is(line, "open")).await.unwrap();
    fs::remove_file(&source).unwrap();
    let closed = agent.wait_for_log(|line| is(line, "closed")).await.unwrap();
    let remedy = format!(
        "{} was deleted on the host, but a mount still shows the deleted one: delete the pod, and its DaemonSet creates it again; to prevent this, mount the parent directory {} instead",
        mounted.display(),
        dir.path().display()
    );
    assert_eq!(closed["reason"], remedy);
}

#[test]
fn an_exec_gate_without_dev_null_names_that_and_not_the_program() {
    let dir = tempfile::tempdir().unwrap();
    let config = dir.path().join("config.yaml");
    write_configuration(
        &config,
        &rule("  - {name: e, exec: {command: [/bin/true]}}\n"),
    )
    .unwrap();
    let empty = dir.path().join("dev");
    fs::create_dir(&empty).unwrap();
    let Some(command) = program_seeing(&[(Path::new(&empty), "/dev")]) else {
        return;
    };
    let output = Command::new(&command[0])
        .args(&command[1..])
        .args(["check", "--config", config.to_str().unwrap()])
        .output()
        .unwrap();
    let table = String::from_utf8(output.stdout).unwrap();
    let reason = "/bin/true: /dev/null cannot be opened: no such file or directory; untaint's container needs /dev";
    assert!(table.contains(reason), "{table}");
}
