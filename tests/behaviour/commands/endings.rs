//! The last words of `wait`, `check` and `run --once`: each exit code other than 0 has a line that says why.

use std::path::Path;

use serde_json::Value;
use tempfile::TempDir;
use testkit::agent::{Agent, write_configuration};
use testkit::api::{Answer, Verb};

use super::{text, untaint};
use crate::scene::{Gates, OnStandIn, PROGRAM, TAINT};

/// Open, as there is always such a file.
const OPEN: &str = "{name: open, file: {path: /}}";
const CLOSED: &str = "{name: closed, file: {path: /does/not/exist}}";
const OF_API: [&str; 5] = [
    "{name: driver, csiDriver: {name: ebs.csi.aws.com}}",
    "{name: gpu, allocatable: {resource: nvidia.com/gpu}}",
    "{name: ready, nodeCondition: {type: Ready}}",
    "{name: zone, nodeLabel: {key: zone, value: a}}",
    "{name: agents, pods: {namespace: kube-system, matchLabels: {app: agent}}}",
];

/// A rule with these gates and `more` fields.
fn rule(name: &str, more: &str, gates: &str) -> String {
    format!("- {{name: {name}, taint: {{key: example.com/{name}}}, {more}gates: [{gates}]}}\n")
}

/// Runs a command with a configuration of these rules. Returns its exit code and its standard error, line by line.
fn run(rules: &str, arguments: &[&str]) -> (i32, Vec<Value>) {
    let directory = TempDir::new().unwrap();
    let config = directory.path().join("config.yaml");
    write_configuration(&config, rules).unwrap();
    run_with(&config, arguments)
}

fn run_with(config: &Path, arguments: &[&str]) -> (i32, Vec<Value>) {
    let config = ["--log-format", "json", "--config", config.to_str().unwrap()];
    let output = untaint(&[arguments, &config].concat(), &[]);
    let lines = text(&output.stderr).lines();
    let lines = lines.map(|line| serde_json::from_str(line).unwrap_or_else(|_| line.into()));
    (output.status.code().unwrap(), lines.collect())
}

/// Rule, gate and reason of the errors.
fn errors(lines: &[Value]) -> Vec<[&str; 3]> {
    let errors = lines.iter().filter(|line| line["level"] == "ERROR");
    let fields = ["rule", "gate", "reason"];
    errors
        .map(|line| fields.map(|name| line[name].as_str().unwrap_or_default()))
        .collect()
}

#[test]
fn a_wait_that_is_late_says_of_each_rule_that_is_not_ready_what_it_waits_for() {
    const STABLE: &str =
        "every gate is open, but not for stableFor yet; give it more time with --timeout";
    const WAITS: &str = "some gate is not open";
    const MISSING: &str = "/does/not/exist: does not exist";
    let open = rule("open", "", OPEN);
    let stable = "stableFor: 1h, ";
    let group = format!("{{name: group, anyOf: [{CLOSED}, {}]}}", OF_API[0]);
    let of_group = format!(
        "closed: {MISSING}; driver: this gate needs the API server, which this command does not use: look at /statusz of \
         the agent, or use untaint run --once"
    );
    let table: [(String, &[[&str; 3]]); 6] = [
        (rule("a", stable, OPEN), &[["a", "", STABLE]]),
        (rule("a", stable, ""), &[["a", "", STABLE]]),
        (
            open.clone() + &rule("a", stable, OPEN) + &rule("b", stable, OPEN),
            &[["a", "", STABLE], ["b", "", STABLE]],
        ),
        (
            open.clone() + &rule("a", stable, &format!("{OPEN}, {CLOSED}")),
            &[["a", "", WAITS], ["a", "closed", MISSING]],
        ),
        (
            rule("a", "", CLOSED) + &rule("b", "", CLOSED),
            &[
                ["a", "", WAITS],
                ["a", "closed", MISSING],
                ["b", "", WAITS],
                ["b", "closed", MISSING],
            ],
        ),
        (
            rule("a", "", &group),
            &[["a", "", WAITS], ["a", "group", &of_group]],
        ),
    ];
    for (rules, expected) in table {
        let (code, lines) = run(&rules, &["wait", "--timeout", "500ms"]);
        assert_eq!(code, 3, "{rules}: {lines:#?}");
        assert_eq!(errors(&lines), expected, "{rules}: {lines:#?}");
    }
}

#[test]
fn a_wait_for_gates_that_only_the_api_server_answers_ends_at_once_and_says_what_to_use() {
    let group = |members: &[&str]| format!("{{name: group, anyOf: [{}]}}", members.join(", "));
    for gates in OF_API
        .map(str::to_owned)
        .into_iter()
        .chain([group(&OF_API)])
    {
        let name = &gates["{name: ".len()..gates.find(',').unwrap()];
        let rules = rule("open", "", OPEN) + &rule("a", "", &format!("{CLOSED}, {gates}"));
        // The time limit is for a program that waits.
        let (code, lines) = run(&rules, &["wait", "--timeout", "10s"]);
        assert_eq!(code, 2, "{rules}: {lines:#?}");
        let [Value::String(line)] = &lines[..] else {
            panic!("{rules}: {lines:#?}");
        };
        assert!(line.contains(&format!("a/{name}")), "{line}");
        assert!(
            line.contains("config.yaml: ") && line.contains("untaint run --once"),
            "{line}"
        );
        assert!(
            !line.contains("a/closed") && !line.contains("open/"),
            "{line}"
        );
    }
    let either = group(&[OPEN, OF_API[0]]);
    let (code, lines) = run(&rule("a", "", &either), &["wait"]);
    assert_eq!(code, 0, "{lines:#?}");
}

#[test]
fn a_check_that_is_not_ready_says_what_to_do_about_gates_that_it_cannot_ask() {
    let closed = "not ready: the table has the reasons";
    let of_api = "not ready: check does not use the API server, and only the API server can open these gates, so check always ends with code 3; \
                  look at /statusz of the agent, or use untaint run --once";
    let both = format!("{CLOSED}, {}", OF_API[0]);
    let group = format!("{{name: group, anyOf: [{}, {}]}}", OF_API[1], OF_API[2]);
    let table = [
        (CLOSED.to_owned(), closed, Value::Null),
        (OF_API[0].to_owned(), of_api, "a/driver".into()),
        (both, of_api, "a/driver".into()),
        (
            format!("{}, {group}", OF_API[0]),
            of_api,
            "a/driver, a/group".into(),
        ),
    ];
    for (gates, message, named) in table {
        let (code, lines) = run(&rule("a", "", &gates), &["check"]);
        assert_eq!(code, 3, "{gates}: {lines:#?}");
        let last = lines.last().unwrap();
        assert_eq!(
            (&last["message"], &last["gates"]),
            (&message.into(), &named)
        );
        assert_eq!(last["level"], "ERROR");
    }
    let (code, lines) = run(&rule("a", "", OPEN), &["check"]);
    assert_eq!((code, lines), (0, Vec::new()));
}

#[tokio::test]
async fn a_command_that_a_signal_stops_before_it_is_done_says_so_as_an_error() {
    let gates = Gates::closed().await;
    let config = gates.config();
    let mut wait = Agent::start(
        PROGRAM,
        &["wait", "--config", config.to_str().unwrap()],
        &[],
    )
    .unwrap();
    wait.wait_for_log(|line| line["gate"] == "agent")
        .await
        .unwrap();
    wait.signal("TERM").await.unwrap();
    assert_eq!(wait.exit_code().await.unwrap(), 3);
    let line = wait
        .wait_for_message("a signal stopped the command before it was done")
        .await
        .unwrap();
    assert_eq!(
        (&line["level"], &line["signal"]),
        (&"ERROR".into(), &"SIGTERM".into())
    );
}

#[tokio::test]
async fn a_run_once_that_is_late_says_what_each_rule_waits_for() {
    let gates = || async {
        let gates = Gates::open().await;
        gates.configure(&(rule("done", "", "") + &gates.rule("")));
        gates
    };
    let late = async |scene: &OnStandIn, more: &[&str]| {
        let arguments = [&["--once", "--settle", "0s", "--timeout", "2s"], more].concat();
        let mut agent = scene.agent(&arguments);
        assert_eq!(agent.exit_code().await.unwrap(), 3);
        let is_late = |line: &&Value| line["message"] == "the rule was not ready in time";
        let line = agent.wait_for_log(|line| is_late(&line)).await.unwrap();
        assert_eq!(line["rule"], "cni", "{:#?}", agent.logs());
        assert_eq!(agent.logs().iter().filter(is_late).count(), 1);
        line["reason"].as_str().unwrap_or_default().to_owned()
    };

    let scene = OnStandIn::with(&[TAINT], gates().await).await;
    scene
        .gates
        .configure(&(rule("done", "", "") + &scene.gates.rule("  stableFor: 1h\n")));
    assert_eq!(
        late(&scene, &[]).await,
        "every gate is open, but not for stableFor yet; give it more time with --timeout"
    );

    let scene = OnStandIn::with(&[TAINT], gates().await).await;
    let broken = Answer::failure(500, "InternalError", "etcd is away");
    scene.server.respond_next(Verb::Patch, 100, broken);
    let reason = late(&scene, &[]).await;
    assert_eq!(
        reason,
        "the change of the taint has not succeeded yet: 500: etcd is away"
    );
}

#[tokio::test]
async fn a_run_once_that_does_not_see_its_node_in_time_says_why() {
    let scene = OnStandIn::with(&[TAINT], Gates::open().await).await;
    let arguments = ["--once", "--timeout", "1s"];
    let mut agent = scene.gates.agent("other", &scene.kubeconfig, &arguments);
    assert_eq!(agent.exit_code().await.unwrap(), 3);
    let message = "the rule was not ready in time";
    let line = agent.wait_for_message(message).await.unwrap();
    assert_eq!(
        line["reason"],
        "there is no Node \"other\"; give --node-name or NODE_NAME the name of the Node that this process runs on"
    );

    let scene = OnStandIn::with(&[TAINT], Gates::open().await).await;
    scene.server.respond_next(Verb::Watch, 100, Answer::Hang);
    let mut agent = scene.agent(&arguments);
    assert_eq!(agent.exit_code().await.unwrap(), 3);
    let line = agent.wait_for_message(message).await.unwrap();
    assert_eq!(
        line["reason"],
        "untaint does not see the Node: the API server has not answered"
    );
}
