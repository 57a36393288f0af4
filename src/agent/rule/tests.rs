mod outage;
mod publication;

use std::time::Duration;

use k8s_openapi::api::core::v1::Taint;
use serde_json::json;
use tokio::sync::mpsc;
use tokio::time::timeout;

use super::*;
use crate::config::{
    Check, FileCheck, Gate, NodeCondition, Observation, ObservedObject, Probe, ProbeHandler,
    Retaint, Schedule,
};
use crate::gate::State;
use crate::node::patch::{Action, removal};
use crate::taint::TaintMatcher;

/// How long a test waits for what must happen.
const DEADLINE: Duration = Duration::from_secs(10);

fn node(version: &str, ready: &str) -> NodeSnapshot {
    let node = serde_json::from_value(json!({
        "metadata": {"name": "node", "uid": "u", "resourceVersion": version},
        "spec": {"taints": [{"key": "t", "effect": "NoSchedule"}]},
        "status": {"conditions": [{"type": "Ready", "status": ready}]},
    }));
    NodeSnapshot {
        node: node.unwrap(),
        watching: true,
        freshness: NodeFreshness::default(),
    }
}

/// A rule, and what its gates report.
fn with_gate(gate: Gate) -> (RuleRunner, mpsc::Receiver<Update>) {
    let taint = TaintMatcher {
        key: "t".into(),
        value: None,
        effect: None,
    };
    let (updates, reported) = mpsc::channel(1);
    let context = GateContext::without_api_server(updates, None);
    let rule = Rule::new("rule", taint, vec![gate]);
    let rule = RuleRunner::new(rule, None, context, Notifier::default());
    (rule, reported)
}

fn on_ready() -> RuleRunner {
    let condition = NodeCondition {
        kind: "Ready".into(),
        status: "True".into(),
        missing_is_false: false,
        max_age: None,
    };
    let object = ObservedObject::NodeCondition(condition);
    let observation = Observation {
        name: "ready".into(),
        object,
    };
    with_gate(Check::Observation(observation).into()).0
}

#[tokio::test]
async fn a_decision_uses_the_state_of_the_gates_for_the_same_version_of_the_node() {
    let mut rule = on_ready();
    let now = Instant::now();
    rule.step(now, &node("1", "True"));
    assert_eq!(rule.state.decision(), Decision::Ready);
    rule.step(now, &node("2", "False"));
    assert_eq!(rule.state.decision(), Decision::Waiting);
}

#[tokio::test]
async fn gates_that_open_when_a_taint_comes_back_lead_to_a_decision_at_once() {
    let mut rule = on_ready();
    let now = Instant::now();
    let mut clean = node("1", "True");
    clean.node.iter_mut().for_each(|node| node.taints.clear());
    rule.step(now, &clean);
    assert_eq!(
        (rule.state.decision(), rule.wake_at()),
        (Decision::Absent, None)
    );
    rule.step(now, &node("2", "True"));
    assert_eq!(
        (rule.state.decision(), rule.wake_at()),
        (Decision::Waiting, Some(now))
    );
    rule.step(now, &node("2", "True"));
    assert_eq!(rule.state.decision(), Decision::Ready);
}

#[tokio::test]
async fn removals_without_an_answer_count_in_a_fight_like_any_other() {
    let mut rule = on_ready();
    let (now, tainted) = (Instant::now(), node("1", "True"));
    let mut clean = tainted.clone();
    clean.node.iter_mut().for_each(|node| node.taints.clear());
    for _ in 0..5 {
        rule.step(now, &tainted);
        rule.step(now, &tainted);
        assert_eq!(rule.state.decision(), Decision::Ready);
        let matcher = rule.state.rule().taint.clone();
        let seen = tainted.node.as_ref().unwrap();
        rule.state
            .unanswered(&removal(seen, |_| Some((&matcher).into())).unwrap());
        rule.step(now, &clean);
    }
    rule.step(now, &tainted);
    rule.step(now, &tainted);
    assert!(matches!(rule.state.decision(), Decision::Limited { .. }));
}

#[tokio::test]
async fn a_denial_is_reported_once_and_does_not_fill_the_log_if_its_message_is_another_each_time() {
    let now = Instant::now();
    let reported = |first| {
        let mut rule = on_ready();
        let denied = RuleEvent::Denied(Denied {
            action: Action::Remove,
            taint: Taint::default(),
            message: "no".into(),
            first,
            decided: false,
        });
        let should_report = |_: &u32| rule.should_report(now, &denied);
        (0..100).filter(should_report).count()
    };
    assert_eq!((reported(false), reported(true)), (0, 10));
}

/// Open, as there is always such a file.
fn on_file(name: &str) -> Gate {
    let handler = ProbeHandler::File(FileCheck::new("/"));
    let probe = Probe {
        name: name.into(),
        handler,
        schedule: Schedule::default(),
    };
    probe.into()
}

/// Lets the gates of `rule` report until it is ready, and returns the last report.
async fn make_ready(
    rule: &mut RuleRunner,
    reported: &mut mpsc::Receiver<Update>,
    node: &NodeSnapshot,
) -> Update {
    rule.step(Instant::now(), node);
    loop {
        let update = timeout(DEADLINE, reported.recv()).await.unwrap().unwrap();
        let now = Instant::now();
        rule.observe_gate(now, &update);
        rule.step(now, node);
        if rule.state.decision() == Decision::Ready {
            return update;
        }
    }
}

/// Decision and [`RuleStatus::done`].
fn done(rule: &RuleRunner) -> (&'static str, bool) {
    let status = rule.status(&[]);
    assert_eq!(status.done, rule.state.is_done());
    (status.decision, status.done)
}

#[tokio::test]
async fn a_rule_is_done_without_the_taint_and_a_dry_run_where_it_would_write() {
    for dry_run in [false, true] {
        let mut rule = on_ready();
        let (now, after) = (Instant::now(), Duration::from_secs(30));
        let version = Rule {
            dry_run,
            retaint: Some(Retaint { after, key: None }),
            ..rule.state.rule().clone()
        };
        rule.reconfigure(now, version);
        assert_eq!(done(&rule), ("no-node", false));
        rule.step(now, &node("1", "False"));
        assert_eq!(done(&rule), ("waiting", false));
        rule.step(now, &node("2", "True"));
        assert_eq!(done(&rule), ("ready", dry_run));
        let clean = |version, ready| {
            let mut snapshot = node(version, ready);
            snapshot
                .node
                .iter_mut()
                .for_each(|node| node.taints.clear());
            snapshot
        };
        rule.step(now, &clean("3", "True"));
        assert_eq!(done(&rule), ("absent", true));
        rule.step(now, &clean("4", "False"));
        assert_eq!(done(&rule), ("lapsing", false));
        rule.step(now + after, &clean("4", "False"));
        assert_eq!(done(&rule), ("lapsed", dry_run));
    }
}

#[tokio::test]
async fn after_a_pause_earlier_reports_of_a_probe_do_not_count() {
    let (mut rule, mut reported) = with_gate(on_file("file"));
    let (now, node) = (Instant::now(), node("1", "True"));
    let open = make_ready(&mut rule, &mut reported, &node).await;
    rule.state.start_afresh(now);
    assert!(rule.observe_gate(now, &open));
    rule.step(now, &node);
    assert_eq!(rule.state.decision(), Decision::Waiting);
    assert!(!rule.observe_gate(now, &open), "it is of the round before");
}

#[tokio::test]
async fn in_another_version_an_unchanged_gate_continues_and_a_removed_one_is_ignored() {
    let (mut rule, mut reported) = with_gate(on_file("stays"));
    let (now, node) = (Instant::now(), node("1", "True"));
    let stays = make_ready(&mut rule, &mut reported, &node).await;
    let before = rule.status(&[]);

    let version = |gates| Rule {
        gates,
        ..rule.state.rule().clone()
    };
    let both = version(vec![on_file("new"), on_file("stays")]);
    let other = version(vec![on_file("new")]);
    rule.reconfigure(now, both);
    rule.step(now, &node);
    assert_eq!(
        rule.state.decision(),
        Decision::Waiting,
        "for the new gate alone"
    );
    let after = rule.status(&[]);
    assert_eq!(
        (after.gates[0].name.as_str(), after.gates[0].state),
        ("new", State::Unknown)
    );
    assert_eq!(after.gates[1], before.gates[0]);
    assert!(
        rule.observe_gate(now, &stays),
        "its evaluation is not another one"
    );
    let new = make_ready(&mut rule, &mut reported, &node).await;

    let now = Instant::now();
    rule.reconfigure(now, other);
    rule.step(now, &node);
    assert_eq!(rule.state.decision(), Decision::Ready);
    assert!(rule.observe_gate(now, &new));
    assert!(!rule.observe_gate(now, &stays));
    assert_eq!(rule.status(&[]).gates.len(), 1);
}

#[tokio::test]
async fn a_gate_that_is_changed_starts_afresh() {
    let (mut rule, mut reported) = with_gate(on_file("file"));
    let (now, node) = (Instant::now(), node("1", "True"));
    let open = make_ready(&mut rule, &mut reported, &node).await;
    let handler = ProbeHandler::File(FileCheck::new("/does/not/exist"));
    let probe = Probe {
        name: "file".into(),
        handler,
        schedule: Schedule::default(),
    };
    let version = Rule {
        gates: vec![probe.into()],
        ..rule.state.rule().clone()
    };
    rule.reconfigure(now, version);
    rule.step(now, &node);
    assert!(!rule.observe_gate(now, &open));
    assert_eq!(rule.state.decision(), Decision::Waiting);
    assert_eq!(rule.status(&[]).gates[0].message, "not evaluated yet");
}
