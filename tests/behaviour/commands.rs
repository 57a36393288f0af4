//! Commands other than `run`, and bad input to all commands.

mod config;
mod endings;
mod files;
mod help;
mod node_name;

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::path::Path;
use std::process::{Command, Output};

use testkit::agent::Agent;
use testkit::health::HealthEndpoint;

use crate::scene::{Gates, PROGRAM, TAINT};

fn untaint(arguments: &[&str], environment: &[(&str, &str)]) -> Output {
    Command::new(PROGRAM)
        .args(arguments)
        .env_clear()
        .envs(environment.iter().copied())
        .output()
        .unwrap()
}

/// Arguments, environment, and a part of the message.
type Case<'a> = (Vec<&'a str>, &'a [(&'a str, &'a str)], &'a str);

fn run<'a>(arguments: &[&'a str]) -> Vec<&'a str> {
    [&["run", "--config", "examples/cilium.yaml"], arguments].concat()
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap()
}

#[tokio::test]
async fn wait_ends_once_every_gate_is_open_and_has_been_for_stable_for() {
    let gates = Gates::closed().await;
    gates.configure(&gates.rule("  stableFor: 200ms\n"));
    let config = gates.config();
    let arguments = ["wait", "--config", config.to_str().unwrap()];
    let mut agent = Agent::start(PROGRAM, &arguments, &[]).unwrap();
    agent
        .wait_for_log(|line| line["gate"] == "conflist" && line["state"] != "unknown")
        .await
        .unwrap();
    gates.write_conflist();
    agent
        .wait_for_log(|line| line["gate"] == "conflist" && line["state"] == "open")
        .await
        .unwrap();
    assert!(!agent.has_ended().unwrap());
    gates.health.set(200);
    assert_eq!(agent.exit_code().await.unwrap(), 0);
}

#[tokio::test]
async fn wait_gives_up_when_its_time_is_over_and_says_why() {
    let gates = Gates::closed().await;
    let config = gates.config();
    let output = untaint(
        &[
            "wait",
            "--timeout",
            "300ms",
            "--config",
            config.to_str().unwrap(),
        ],
        &[],
    );
    assert_eq!(output.status.code(), Some(3));
    assert!(
        text(&output.stderr).contains("does not exist"),
        "{}",
        text(&output.stderr)
    );
}

#[test]
fn check_prints_a_table_that_says_why_each_gate_is_closed_and_exits_with_3() {
    let output = untaint(&["check", "--config", "examples/cilium.yaml"], &[]);
    assert_eq!(output.status.code(), Some(3));
    let table: Vec<_> = text(&output.stdout).lines().collect();
    assert!(table[0].starts_with("RULE"), "{table:#?}");
    assert!(
        table[1].contains("closed") && table[1].contains("/etc/cni/net.d"),
        "{table:#?}"
    );
    assert!(
        table[2].contains("closed") && table[2].contains("localhost:9879"),
        "{table:#?}"
    );
}

#[tokio::test]
async fn check_exits_with_0_when_every_gate_is_open() {
    let gates = Gates::open().await;
    let config = gates.config();
    let arguments = ["check", "--config", config.to_str().unwrap()];
    let mut check = Agent::start(PROGRAM, &arguments, &[]).unwrap();
    assert_eq!(check.exit_code().await.unwrap(), 0);
}

/// cilium#13203, cilium#30968 (D23): in a cluster of one family of addresses, an agent listens on the loopback address of
/// that family alone.
#[tokio::test]
async fn the_examples_ask_agents_at_the_loopback_address_of_either_family() {
    let directory = tempfile::tempdir().unwrap();
    for (example, gate, port) in [
        ("any-of", "cni", 9879),
        ("calico", "felix", 9099),
        ("cilium", "agent", 9879),
        ("multus", "agent", 9879),
        ("post-start", "agent", 8080),
        ("storage-agent", "agent", 9810),
    ] {
        let written = std::fs::read_to_string(format!("examples/{example}.yaml")).unwrap();
        let line = format!("port: {port}");
        assert_eq!(written.matches(&line).count(), 1, "{example}");
        for address in [
            IpAddr::from(Ipv4Addr::LOCALHOST),
            IpAddr::from(Ipv6Addr::LOCALHOST),
        ] {
            let health = HealthEndpoint::start_at(address, 200).await.unwrap();
            let example = written.replace(&line, &format!("port: {}", health.port()));
            let config = directory.path().join("config.yaml");
            std::fs::write(&config, example).unwrap();
            let path = config.to_str().unwrap().to_owned();
            let check = move || untaint(&["check", "--config", &path], &[]);
            let output = tokio::task::spawn_blocking(check).await.unwrap();
            let is_open = |line: &str| {
                let words: Vec<_> = line.split_whitespace().collect();
                words[1..].starts_with(&[gate, "open"])
            };
            let table = text(&output.stdout);
            assert!(table.lines().any(is_open), "{line} at {address}: {table}");
        }
    }
}

#[test]
fn install_copies_the_program_whole_and_replaces_an_older_one() {
    let directory = tempfile::TempDir::new().unwrap();
    let target = directory.path().join("untaint");
    std::fs::write(&target, "older").unwrap();
    let output = untaint(&["install", directory.path().to_str().unwrap()], &[]);
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(
        std::fs::read(&target).unwrap(),
        std::fs::read(PROGRAM).unwrap()
    );
    let version = Command::new(&target).arg("--version").output().unwrap();
    assert_eq!(
        text(&version.stdout),
        concat!("untaint ", env!("CARGO_PKG_VERSION"), "\n")
    );
    assert_eq!(
        std::fs::read_dir(directory.path()).unwrap().count(),
        1,
        "nothing else is left"
    );

    let output = untaint(&["install", "/does/not/exist"], &[]);
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stderr).contains("/does/not/exist"));
}

#[test]
fn bad_usage_is_told_with_its_remedy_and_exits_with_2() {
    let directory = tempfile::TempDir::new().unwrap();
    let file = |name: &str, content: &[u8]| {
        let path = directory.path().join(name);
        std::fs::write(&path, content).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let (empty, binary) = (file("empty", b""), file("binary", b"\xff\xfe\x00kind"));
    let pod = file("pod", b"apiVersion: v1\nkind: Pod\n");
    let huge = file("huge", &vec![b'#'; 3 << 20]);
    let node = ("NODE_NAME", "node");
    let cases: [Case<'_>; 16] = [
        (run(&[]), &[], "NODE_NAME"),
        (run(&[]), &[("NODE_NAME", "")], "NODE_NAME"),
        (run(&[]), &[("NODE_NAME", "Not_A_Node")], "spec.nodeName"),
        (run(&[]), &[("NODE_NAME", "../nodes/other")], "lower-case"),
        (run(&[]), &[node], "--kubeconfig"),
        (
            run(&["--kubeconfig", "/does/not/exist"]),
            &[node],
            "/does/not/exist",
        ),
        (run(&["--kubeconfig", &empty]), &[node], "empty"),
        (run(&["--kubeconfig", &binary]), &[node], "binary"),
        (run(&["--kubeconfig", &pod]), &[node], "pod"),
        (run(&["--listen", "everywhere"]), &[node], "127.0.0.1:9468"),
        (run(&["--timeout", "5m"]), &[node], "--once"),
        (run(&["--taint", TAINT]), &[node], "cannot be used with"),
        (
            vec!["run", "--taint", "karpenter.sh/unregistered"],
            &[node],
            "Karpenter",
        ),
        (vec!["run"], &[node], "--config"),
        (vec!["check", "--file", "relative"], &[], "absolute"),
        (vec!["check", "--config", &huge], &[], "huge"),
    ];
    for (arguments, environment, expected) in cases {
        let output = untaint(&arguments, environment);
        let stderr = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {stderr}");
        assert!(stderr.contains(expected), "{arguments:?}: {stderr}");
        assert!(!stderr.contains("panicked"), "{stderr}");
    }
}

#[test]
fn a_kubeconfig_that_is_wrong_is_told_without_its_secrets() {
    let directory = tempfile::TempDir::new().unwrap();
    let path = directory.path().join("kubeconfig");
    let whole = |user: &str, server: &str| {
        format!(
            "apiVersion: v1\nkind: Config\ncurrent-context: c\ncontexts: [{{name: c, context: {{cluster: k, user: u}}}}]\n\
             clusters: [{{name: k, cluster: {{server: {server}}}}}]\nusers:\n- name: u\n  user: {user}\n"
        )
    };
    let here = "https://127.0.0.1:1";
    for (text, expected) in [
        (whole("{token: \"SEC\\nRET\"}", here), "control character"),
        (
            whole(
                "{exec: {command: /bin/echo, args: [SECRET], apiVersion: v1}}",
                here,
            ),
            "not supported",
        ),
        (whole("{token: SECRET}", "ftp://127.0.0.1"), "http or https"),
        (
            whole("{token: SECRET, certificate-authority: [", here),
            "kubeconfig",
        ),
        (whole("{token: [SECRET]}", here), "kubeconfig"),
    ] {
        std::fs::write(&path, &text).unwrap();
        let arguments = run(&["--kubeconfig", path.to_str().unwrap()]);
        let output = untaint(&arguments, &[("NODE_NAME", "node")]);
        let stderr = self::text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{text}: {stderr}");
        assert!(stderr.contains(expected), "{text}: {stderr}");
        assert!(
            !stderr.contains("SEC") && !stderr.contains("panicked"),
            "{stderr}"
        );
    }
}

#[test]
fn a_pipe_in_place_of_a_file_does_not_hold_it_up() {
    let directory = tempfile::TempDir::new().unwrap();
    let pipe = directory.path().join("pipe");
    testkit::make_pipe(&pipe);
    let output = untaint(&["check", "--config", pipe.to_str().unwrap()], &[]);
    assert_eq!(output.status.code(), Some(2));
    assert!(
        text(&output.stderr).contains("not a regular file"),
        "{}",
        text(&output.stderr)
    );
}

#[tokio::test]
async fn a_standard_error_that_nobody_can_write_to_does_not_end_it() {
    let gates = Gates::open().await;
    let config = gates.config();
    let full = std::fs::File::options()
        .write(true)
        .open("/dev/full")
        .unwrap();
    let mut wait = tokio::process::Command::new(PROGRAM)
        .args(["wait", "--config", config.to_str().unwrap()])
        .stderr(full)
        .spawn()
        .unwrap();
    let ended = tokio::time::timeout(testkit::DEADLINE, wait.wait())
        .await
        .unwrap()
        .unwrap();
    assert_eq!(ended.code(), Some(0));
}

#[test]
fn the_program_is_static() {
    let output = Command::new("ldd").arg(PROGRAM).output().unwrap();
    let said = format!("{}{}", text(&output.stdout), text(&output.stderr));
    assert!(
        said.contains("statically linked") || said.contains("not a dynamic executable"),
        "{said}"
    );
    assert!(Path::new(PROGRAM).exists());
}
