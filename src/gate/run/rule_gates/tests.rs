use std::fs;
use std::path::Path;

use serde_json::{Map, json};
use tempfile::TempDir;
use tokio::sync::mpsc;
use tokio::time::sleep;

use super::*;
use crate::config;
use crate::gate::observation;
use crate::gate::probe::testing::soon;

/// The gates of a rule, and what they report. A gate `x` of the kind nodeLabel is open while the Node has the label `x`.
struct Scene {
    gates: RuleGates,
    updates: mpsc::Receiver<Update>,
}

fn rule(gates: &str) -> Rule {
    let text = format!(
        "apiVersion: untaint/v1alpha1\nkind: UntaintConfiguration\nrules:\n\
         - {{name: r, taint: {{key: t}}, gates: [{gates}]}}"
    );
    config::parse(&text).unwrap().rules.remove(0)
}

impl Scene {
    fn new(gates: &str) -> Self {
        let (sender, updates) = mpsc::channel(16);
        let context = GateContext::without_api_server(sender, None);
        Self {
            gates: RuleGates::new(&rule(gates), context),
            updates,
        }
    }

    /// Evaluates the gates for a Node with these labels; `None`: the Node is not known now.
    fn run(&mut self, round: u64, labels: Option<&str>) {
        let labels = labels.map(|labels| {
            let labels = labels.split_whitespace();
            labels.map(|label| (label.to_owned(), json!(""))).collect()
        });
        let node = labels.clone().map(|labels: Map<_, _>| {
            let metadata =
                json!({"name": "n", "uid": "u", "resourceVersion": "1", "labels": labels});
            serde_json::from_value(json!({ "metadata": metadata })).unwrap()
        });
        let node = NodeSnapshot {
            node,
            watching: labels.is_some(),
            ..NodeSnapshot::default()
        };
        self.gates.run(Instant::now(), round, &node);
    }

    /// The states in the order of the configuration. `w`: waits for others.
    fn states(&self) -> String {
        let states = self.gates.status().map(|gate| match gate.state {
            State::Unknown if gate.message.starts_with("waits for ") => "w",
            state => &state.as_str()[..1],
        });
        states.collect()
    }

    fn message(&self, gate: &str) -> &str {
        let mut gates = self.gates.status();
        &gates.find(|status| status.name == gate).unwrap().message
    }

    /// Applies the next update of a probe. An observation only reports that there is no API server.
    async fn update(&mut self) -> Update {
        loop {
            let update = soon(self.updates.recv()).await.unwrap();
            if update.outcome != observation::without_api_server() {
                self.gates.apply(Instant::now(), &update);
                return update;
            }
        }
    }
}

const LABELS: &str = "{name: c, nodeLabel: {key: c}, after: [a, b]}, {name: b, nodeLabel: {key: b}, after: [a]}, \
                      {name: a, nodeLabel: {key: a}}";

#[tokio::test]
async fn a_gate_is_not_asked_while_one_before_it_is_not_open_whatever_the_order_in_the_file() {
    let mut scene = Scene::new(LABELS);
    assert_eq!(scene.states(), "uuu");
    // Each row is a Node after the one before.
    for (labels, states, of_rule) in [
        (Some("b c"), "wwc", State::Closed),
        (Some(""), "wwc", State::Closed),
        (None, "wwu", State::Unknown),
        (Some("a c"), "wco", State::Closed),
        (Some("a b"), "coo", State::Closed),
        (Some("a b c"), "ooo", State::Open),
        (Some("b c"), "wwc", State::Closed),
        (Some("a b c"), "ooo", State::Open),
        (Some("a c"), "wco", State::Closed),
        (Some("a b c"), "ooo", State::Open),
        (None, "wwu", State::Unknown),
        (Some("a b c"), "ooo", State::Open),
        (None, "wwu", State::Unknown),
        (Some("b c"), "wwc", State::Closed),
        (None, "wwu", State::Unknown),
    ] {
        scene.run(0, labels);
        let found = (scene.states(), scene.gates.state());
        assert_eq!(found, (states.to_owned(), of_rule), "{labels:?}");
    }
    scene.run(0, Some(""));
    assert_eq!(scene.message("c"), "waits for a, b");
    assert_eq!(scene.message("b"), "waits for a");
    assert_eq!(
        scene.gates.waits_for(),
        "c: waits for a, b; b: waits for a; a: the Node has no label a"
    );
    scene.run(0, Some("a"));
    assert_eq!(scene.message("c"), "waits for b");
    scene.gates.rest(Instant::now());
    assert!(
        !scene.message("c").contains("waits"),
        "{}",
        scene.message("c")
    );
    // In another round as in the first.
    scene.run(1, Some("b c"));
    assert_eq!(scene.states(), "wwc");
}

/// In an outage, a node on which this gate was closed has no reason to hurry.
#[tokio::test]
async fn a_gate_that_was_closed_before_it_waits_stays_in_the_way() {
    let gates = "{name: a, nodeLabel: {key: a}}, {name: b, nodeLabel: {key: b}, after: [a]}";
    let mut scene = Scene::new(gates);
    for (labels, states, waits_for_api) in [
        (Some("a b"), "oo", true),
        (None, "uw", true),
        (Some("a"), "oc", false),
        (None, "uw", false),
        (None, "uw", false),
        (Some("a b"), "oo", true),
        (None, "uw", true),
    ] {
        scene.run(0, labels);
        let found = (scene.states(), scene.gates.are_open_but_for_api());
        assert_eq!(found, (states.to_owned(), waits_for_api), "{labels:?}");
    }
    scene.run(0, Some("a"));
    scene.gates.rest(Instant::now());
    scene.run(1, None);
    assert!(scene.gates.are_open_but_for_api(), "that was another round");
}

#[tokio::test]
async fn groups_wait_and_are_waited_for_like_any_gate() {
    let mut scene = Scene::new(
        "{name: one, anyOf: [{name: x, nodeLabel: {key: x}}, {name: y, nodeLabel: {key: y}}], after: [first]}, \
         {name: last, nodeLabel: {key: last}, after: [one]}, {name: first, nodeLabel: {key: first}}",
    );
    for (labels, states) in [
        ("x y last", "wwc"),
        ("first last", "cwo"),
        ("first y last", "ooo"),
        ("first y", "oco"),
        ("y last", "wwc"),
    ] {
        scene.run(0, Some(labels));
        assert_eq!(scene.states(), states, "{labels}");
    }
}

#[tokio::test]
async fn a_gate_that_waits_is_known_and_in_the_way_of_nothing() {
    let mut scene =
        Scene::new("{name: a, nodeLabel: {key: a}}, {name: b, file: {path: /}, after: [a]}");
    assert!(!scene.gates.are_evaluated());
    // The API server alone can help.
    scene.run(0, None);
    assert_eq!(scene.states(), "uw");
    assert!(scene.gates.are_open_but_for_api());
    scene.run(0, Some(""));
    assert_eq!(scene.states(), "cw");
    assert!(!scene.gates.are_open_but_for_api());
    assert!(scene.gates.are_evaluated(), "there is something to publish");
    assert_eq!(scene.gates.last_to_open(), None);
    scene.run(0, Some("a"));
    assert_eq!(scene.message("b"), "not evaluated yet");
    assert!(!scene.gates.are_open_but_for_api());
    assert!(
        scene.gates.are_evaluated(),
        "what was published does not stay"
    );
    scene.update().await;
    assert_eq!(
        (scene.states().as_str(), scene.gates.last_to_open()),
        ("oo", Some("b"))
    );
    // In a round in which each gate was open when it was first asked, none was waited for.
    scene.run(1, Some("a"));
    assert!(!scene.gates.are_evaluated());
    scene.update().await;
    assert_eq!(
        (scene.states().as_str(), scene.gates.last_to_open()),
        ("oo", None)
    );
}

#[tokio::test]
async fn a_change_of_a_probe_starts_and_stops_those_behind_it_at_once() {
    let dir = TempDir::new().unwrap();
    let (first, second) = (dir.path().join("first"), dir.path().join("second"));
    fs::write(&second, "").unwrap();
    let mut scene = Scene::new(&format!(
        "{{name: a, file: {{path: {}}}, periodSeconds: 0.01}}, \
         {{name: b, file: {{path: {}}}, periodSeconds: 0.01, after: [a]}}, \
         {{name: c, nodeLabel: {{key: c}}, after: [b]}}",
        first.display(),
        second.display()
    ));
    scene.run(0, Some("c"));
    assert_eq!(scene.states(), "uww");
    scene.update().await;
    assert_eq!(scene.states(), "cww");
    fs::write(&first, "").unwrap();
    scene.update().await;
    assert_eq!(scene.states(), "ouw");
    let open = scene.update().await;
    assert_eq!(scene.states(), "oou", "the Node has not been looked at");
    scene.run(0, Some("c"));
    assert_eq!(scene.states(), "ooo");
    fs::remove_file(&first).unwrap();
    scene.update().await;
    assert_eq!(scene.states(), "cww");
    assert!(
        !scene.gates.apply(Instant::now(), &open),
        "it is of the evaluation that has ended"
    );
    assert_eq!(scene.states(), "cww");
}

/// Whether the process whose number is in the file runs.
fn runs(pid: &Path) -> bool {
    let pid = fs::read_to_string(pid).unwrap_or_default();
    let pid = pid.trim();
    !pid.is_empty() && Path::new("/proc").join(pid).exists()
}

#[tokio::test]
async fn a_gate_that_must_wait_again_ends_the_program_that_it_runs() {
    let dir = TempDir::new().unwrap();
    let pid = dir.path().join("pid");
    let mut scene = Scene::new(&format!(
        "{{name: a, nodeLabel: {{key: a}}}}, \
         {{name: b, exec: {{command: [/bin/sh, -c, \"echo $$ > {}; exec sleep 1000\"]}}, timeoutSeconds: 3600, after: [a]}}",
        pid.display()
    ));
    let poll = || sleep(Duration::from_millis(5));
    scene.run(0, Some(""));
    scene.run(0, Some("a"));
    soon(async {
        while !runs(&pid) {
            poll().await;
        }
    })
    .await;
    scene.run(0, Some(""));
    soon(async {
        while runs(&pid) {
            poll().await;
        }
    })
    .await;
}

#[tokio::test]
async fn in_another_version_of_the_rule_gates_follow_its_order() {
    let mut scene = Scene::new(LABELS);
    scene.run(0, Some("a b c"));
    assert_eq!(scene.states(), "ooo");
    // The gate that is first now is another one.
    let version = rule(
        "{name: a, nodeLabel: {key: other}}, {name: b, nodeLabel: {key: b}, after: [a]}, {name: c, nodeLabel: {key: c}}",
    );
    scene.gates.reconfigure(Instant::now(), &version);
    assert_eq!(scene.gates.state(), State::Unknown);
    scene.run(0, Some("a b c"));
    assert_eq!(scene.states(), "cwo");
    scene.run(0, Some("other b c"));
    assert_eq!(scene.states(), "ooo");
}

/// The gates of a rule whose files exist. The next evaluation of each is an hour away.
async fn with_slow_probes(gates: &str, labels: &str, states: &str) -> Scene {
    let mut scene = Scene::new(gates);
    scene.run(0, Some(labels));
    while scene.states() != states {
        scene.update().await;
    }
    scene
}

const CHAIN: &str = "{name: c, file: {path: /}, periodSeconds: 3600, after: [b]}, \
                     {name: b, file: {path: /}, periodSeconds: 3600, after: [a]}, \
                     {name: d, file: {path: /}, periodSeconds: 3600}";

#[tokio::test]
async fn what_gates_found_does_not_count_once_another_version_replaces_a_gate_before_them() {
    let gates = |label: &str| format!("{CHAIN}, {{name: a, nodeLabel: {{key: {label}}}}}");
    let mut scene = with_slow_probes(&gates("a"), "a", "oooo").await;
    let reconfigure = |scene: &mut Scene, label| {
        let version = rule(&gates(label));
        scene.gates.reconfigure(Instant::now(), &version);
    };
    reconfigure(&mut scene, "a");
    assert_eq!(scene.states(), "oooo", "nothing has changed");
    // The new one is open, closed or unknown when it is first asked.
    for (label, labels, states) in [
        ("other", Some("a other"), "wuoo"),
        ("a", Some("other"), "wwoc"),
        ("other", None, "wwou"),
    ] {
        reconfigure(&mut scene, label);
        assert_eq!(scene.states(), "uuou", "{label} {labels:?}");
        scene.run(0, labels);
        assert_eq!(scene.states(), states, "{label} {labels:?}");
        scene.run(0, Some("a other"));
        while scene.states() != "oooo" {
            scene.update().await;
        }
    }
}

/// What the gate found may be from before a gate that closed and opened again while nobody could see it.
#[tokio::test]
async fn a_gate_is_asked_again_once_the_gate_before_it_was_unknown() {
    let gates = format!("{CHAIN}, {{name: a, nodeLabel: {{key: a}}}}");
    let mut scene = with_slow_probes(&gates, "a", "oooo").await;
    // Each row is a Node after the one before, and its round.
    for (round, labels, states) in [
        (0, Some("a"), "oooo"),
        (0, None, "wwou"),
        (0, Some("a"), "wuoo"),
        (0, Some(""), "wwoc"),
        (0, None, "wwou"),
        (0, Some("a"), "wuoo"),
        (0, None, "wwou"),
        (1, None, "wwuu"),
    ] {
        scene.run(round, labels);
        assert_eq!(scene.states(), states, "{round} {labels:?}");
    }
}
