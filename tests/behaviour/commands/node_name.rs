//! The name of the Node in the programs of exec gates.

use serde_json::Value;
use testkit::agent::{Agent, write_configuration};

use super::{text, untaint};
use crate::scene::{Gates, OnStandIn, PROGRAM, TAINT};

/// The program prints its environment, and fails.
const RULE: &str = "- name: r\n  taint: {key: example.com/not-ready}\n  gates:\n  \
    - {name: e, timeoutSeconds: 60, exec: {command: [/bin/sh, -c, \"tr '\\\\0' ' ' </proc/$$/environ; exit 1\"]}}\n";
const PATH: &str = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// The reason of the gate, if the program has nothing else in its environment.
fn reason(node_name: &str) -> String {
    format!("/bin/sh: exit code 1: {node_name}{PATH}")
}

async fn says(agent: &Agent, node_name: &str) {
    let expected = reason(node_name);
    let is_it = |line: &Value| {
        let said = line["reason"].as_str().unwrap_or_default();
        line["gate"] == "e" && said.trim_end() == expected
    };
    agent.wait_for_log(is_it).await.unwrap();
}

#[tokio::test]
async fn a_program_gets_the_name_that_check_and_wait_are_given() {
    let directory = tempfile::TempDir::new().unwrap();
    let config = directory.path().join("config.yaml");
    write_configuration(&config, RULE).unwrap();
    let config = ["--config", config.to_str().unwrap()];
    let environment = [("NODE_NAME", "node-1"), ("TOKEN", "hunter2")];
    for (flag, environment, expected) in [
        (&[][..], &[][..], ""),
        (&[], &environment, "NODE_NAME=node-1 "),
        (
            &["--node-name", "node-2"],
            &environment,
            "NODE_NAME=node-2 ",
        ),
    ] {
        let output = untaint(&[&["check"], &config[..], flag].concat(), environment);
        assert_eq!(output.status.code(), Some(3), "{output:?}");
        let table = text(&output.stdout);
        assert!(table.trim_end().ends_with(&reason(expected)), "{table}");
        let wait = [&["wait"], &config[..], flag].concat();
        let agent = Agent::start(PROGRAM, &wait, environment).unwrap();
        says(&agent, expected).await;
    }
    for name in ["", "Not_A_Node"] {
        let output = untaint(&[&["check"], &config[..]].concat(), &[("NODE_NAME", name)]);
        assert_eq!(output.status.code(), Some(2), "{output:?}");
        let error = text(&output.stderr);
        assert!(error.contains("--node-name"), "{error}");
    }
}

#[tokio::test]
async fn a_program_gets_the_name_of_the_agents_own_node() {
    let scene = OnStandIn::with(&[TAINT], Gates::closed().await).await;
    scene.gates.configure(RULE);
    let agent = scene.agent(&[]);
    says(&agent, "NODE_NAME=node ").await;
}
