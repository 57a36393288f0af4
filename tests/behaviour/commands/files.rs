//! Where a configuration comes from: several files, directories, standard input.

use std::fs;
use std::io::Write as _;
use std::process::{Command, Output, Stdio};

use tempfile::TempDir;
use testkit::DEADLINE;

use super::{text, untaint};
use crate::scene::{Gates, OnStandIn, PROGRAM, TAINT};

const HEAD: &str = "apiVersion: untaint/v1alpha1\nkind: UntaintConfiguration\nrules:\n";

fn rule(name: &str) -> String {
    format!("{HEAD}- {{name: {name}, taint: {{key: example.com/{name}}}, gates: []}}\n")
}

/// A directory with these files, each with a rule of its name.
fn directory(files: &[&str]) -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    for file in files {
        let name = file.split('.').next().unwrap();
        fs::write(dir.path().join(file), rule(name)).unwrap();
    }
    dir
}

/// Runs the program with this text on its standard input.
fn fed(arguments: &[&str], input: &str) -> Output {
    let mut child = Command::new(PROGRAM)
        .args(arguments)
        .env_clear()
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // A program that refuses its arguments does not read it.
    let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
    child.wait_with_output().unwrap()
}

/// The exit code with the standard output, or with the standard error if it is 2.
fn ends(output: &Output) -> (i32, String) {
    let code = output.status.code().unwrap();
    let of = if code == 2 {
        &output.stderr
    } else {
        &output.stdout
    };
    (code, text(of).to_owned())
}

#[test]
fn config_validate_says_what_is_valid_and_how_much_it_is() {
    let dir = directory(&["a.yaml", "b.yml"]);
    let at = |name: &str| dir.path().join(name).to_str().unwrap().to_owned();
    let (a, b, all) = (at("a.yaml"), at("b.yml"), at(""));
    for (arguments, expected) in [
        (
            vec!["examples/cilium.yaml"],
            "examples/cilium.yaml: valid: 1 rule, 2 gates\n".into(),
        ),
        (
            vec![&a, &b],
            format!("{a}, {b}: valid: 2 files, 2 rules, 0 gates\n"),
        ),
        (
            vec![&all],
            format!("{all}: valid: 2 files, 2 rules, 0 gates\n"),
        ),
    ] {
        let output = untaint(&[&["config", "validate"][..], &arguments].concat(), &[]);
        assert_eq!(ends(&output), (0, expected));
        assert_eq!(text(&output.stderr), "");
    }
    let output = untaint(&["config", "validate", &a, "examples", &a], &[]);
    assert_eq!(ends(&output), (2, format!("{a}: is named twice\n")));
}

#[test]
fn every_command_joins_the_files_that_it_is_given() {
    let dir = directory(&["a.yaml", "b.yaml", "c.yaml"]);
    let c = dir.path().join("c.yaml");
    let elsewhere = tempfile::tempdir().unwrap();
    fs::rename(&c, elsewhere.path().join("c")).unwrap();
    let [all, c] =
        [dir.path(), &elsewhere.path().join("c")].map(|path| path.to_str().unwrap().to_owned());
    let joined = untaint(&["config", "show", &c, &all], &[]);
    assert_eq!(joined.status.code(), Some(0));
    let joined = untaint::config::parse(text(&joined.stdout)).unwrap();
    let names: Vec<_> = joined.rules.iter().map(|rule| rule.name.as_str()).collect();
    assert_eq!(names, ["c", "a", "b"]);

    let flags: [&[&str]; 2] = [
        &["--config", &c, "--config", &all],
        &["--config", &format!("{c}:{all}")],
    ];
    for flags in flags {
        for (command, expected) in [
            ("check", (0, "RULE")),
            ("wait", (0, "")),
            ("manifests", (2, "cannot be a key of the ConfigMap")),
        ] {
            let (code, said) = ends(&untaint(&[&[command], flags].concat(), &[]));
            assert!(
                code == expected.0 && said.contains(expected.1),
                "{command}: {code}: {said}"
            );
        }
    }
    let variable = format!("{c}:{all}");
    let output = untaint(&["check"], &[("UNTAINT_CONFIG", &variable)]);
    assert_eq!(output.status.code(), Some(0));

    // What is wrong with one of them is wrong for all.
    fs::write(&c, rule("a")).unwrap();
    let run = ["run", "--node-name", "a"];
    let wait = ["wait"];
    for command in [&run[..], &wait, &["check"], &["manifests"]] {
        let (code, said) = ends(&untaint(&[command, flags[0]].concat(), &[]));
        let expected = format!(
            "{all}/a.yaml:4:10: rules[0].name: must be unique, but is also the name at {c}:4:4\n"
        );
        assert!(
            code == 2 && said.starts_with(&expected),
            "{command:?}: {code}: {said}"
        );
    }
    let empty = tempfile::tempdir().unwrap();
    let empty = empty.path().to_str().unwrap();
    let (code, said) = ends(&untaint(&["check", "--config", empty], &[]));
    assert_eq!(code, 2);
    assert_eq!(
        said,
        format!("{empty}: is a directory without a file *.yaml or *.yml\n")
    );
}

#[test]
fn standard_input_is_a_file_like_any_other_for_commands_that_read_it_once() {
    let good = rule("a");
    for (arguments, expected) in [
        (
            &["config", "validate", "-"][..],
            "standard input: valid: 1 rule, 0 gates\n",
        ),
        (&["config", "show", "-"], "name: a"),
        (&["check", "--config", "-"], "RULE"),
        (&["wait", "--config", "-"], ""),
        (
            &["manifests", "--config", "-"],
            "config.yaml: |2\n    apiVersion",
        ),
    ] {
        let (code, said) = ends(&fed(arguments, &good));
        assert!(
            code == 0 && said.contains(expected),
            "{arguments:?}: {code}: {said}"
        );
        let (code, said) = ends(&fed(arguments, "nonsense"));
        assert_eq!(code, 2, "{arguments:?}: {said}");
        assert!(
            said.starts_with("standard input:1:1: must be a mapping"),
            "{said}"
        );
    }
    let dir = directory(&["b.yaml"]);
    let b = dir.path().to_str().unwrap();
    let huge = "#".repeat((1 << 20) + 1);
    for (arguments, input, code, expected) in [
        (&["-", b][..], good.as_str(), 0, "2 files, 2 rules"),
        (&["-", "-"], &good, 2, "standard input: is named twice\n"),
        (&["-"], "", 2, "standard input: is empty"),
        (&["-"], &huge, 2, "standard input: is larger than 1 MiB\n"),
        (
            &["-"],
            "a\0",
            2,
            "standard input: is binary, not text: byte 1 is NUL\n",
        ),
    ] {
        let (ended, said) = ends(&fed(&[&["config", "validate"], arguments].concat(), input));
        assert!(ended == code && said.contains(expected), "{ended}: {said}");
    }
}

#[tokio::test]
async fn run_reads_standard_input_only_if_it_never_reads_it_again() {
    let (code, said) = ends(&fed(
        &["run", "--node-name", "a", "--config", "-"],
        &rule("a"),
    ));
    assert_eq!(code, 2);
    assert!(
        said.contains("name a file with --config, or use --once"),
        "{said}"
    );

    let scene = OnStandIn::with(&[TAINT], Gates::open().await).await;
    let config = fs::File::open(scene.gates.config()).unwrap();
    let arguments = [
        "run",
        "--once",
        "--node-name",
        "node",
        "--no-policy-check",
        "--config",
        "-",
        "--kubeconfig",
    ];
    let mut run = tokio::process::Command::new(PROGRAM)
        .args(arguments)
        .arg(&scene.kubeconfig)
        .env_clear()
        .stdin(config)
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    scene.wait_for_taints(&[]).await;
    let ended = tokio::time::timeout(DEADLINE, run.wait()).await;
    assert_eq!(ended.unwrap().unwrap().code(), Some(0));
}

#[tokio::test]
async fn standard_input_that_never_ends_costs_a_command_with_a_time_out_no_more_than_that() {
    let mut wait = tokio::process::Command::new(PROGRAM)
        .args(["wait", "--timeout", "300ms", "--config", "-"])
        .env_clear()
        .stdin(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    let _open = wait.stdin.take();
    let ended = tokio::time::timeout(DEADLINE, wait.wait_with_output()).await;
    let output = ended.unwrap().unwrap();
    assert_eq!(output.status.code(), Some(3));
    let said = text(&output.stderr);
    assert!(said.contains("standard input: it has not ended"), "{said}");
}
