use serde_json::json;
use tokio::sync::mpsc;

use super::*;
use crate::config::{
    Check, Condition, FileCheck, Gate, NodeCondition, Observation, Observed, Probe, Schedule,
};
use crate::gate::Outcome;
use crate::gate::observation::Sight;
use crate::gate::report::Place;
use crate::taint::TaintMatcher;

fn node(version: &str, ready: &str) -> NodeSight {
    let node = serde_json::from_value(json!({
        "metadata": {"name": "node", "uid": "u", "resourceVersion": version},
        "spec": {"taints": [{"key": "t", "effect": "NoSchedule"}]},
        "status": {"conditions": [{"type": "Ready", "status": ready}]},
    }));
    NodeSight {
        node: node.unwrap(),
        watching: true,
    }
}

fn with_gate(gate: Gate) -> RuleAtWork {
    let taint = TaintMatcher {
        key: "t".into(),
        value: None,
        effect: None,
    };
    let (updates, _) = mpsc::channel(1);
    let surroundings = Surroundings {
        updates,
        sight: Sight::none(),
    };
    let rule = Rule::new("rule", taint, vec![gate]);
    RuleAtWork::new(0, rule, None, surroundings, Teller::default())
}

fn on_ready() -> RuleAtWork {
    let condition = NodeCondition {
        kind: "Ready".into(),
        status: "True".into(),
    };
    let object = Observed::NodeCondition(condition);
    let observation = Observation {
        name: "ready".into(),
        object,
    };
    with_gate(Gate::Single(Condition::Observation(observation)))
}

#[tokio::test]
async fn a_decision_goes_by_what_the_gates_say_of_the_very_node_it_is_about() {
    let mut rule = on_ready();
    let now = Instant::now();
    rule.step(now, &node("1", "True"));
    assert_eq!(rule.decision(), Decision::Ready);
    rule.step(now, &node("2", "False"));
    assert_eq!(rule.decision(), Decision::Waiting);
}

#[tokio::test]
async fn gates_that_open_as_a_taint_comes_back_are_not_left_for_later() {
    let mut rule = on_ready();
    let now = Instant::now();
    let mut clean = node("1", "True");
    clean.node.iter_mut().for_each(|node| node.taints.clear());
    rule.step(now, &clean);
    assert_eq!((rule.decision(), rule.wake_at()), (Decision::Absent, None));
    rule.step(now, &node("2", "True"));
    assert_eq!(
        (rule.decision(), rule.wake_at()),
        (Decision::Waiting, Some(now))
    );
    rule.step(now, &node("2", "True"));
    assert_eq!(rule.decision(), Decision::Ready);
}

#[tokio::test]
async fn after_a_pause_what_a_probe_said_before_does_not_count() {
    let check = Check::File(FileCheck {
        path: "/does/not/exist".into(),
        newer_than_boot: false,
    });
    let probe = Probe {
        name: "file".into(),
        check,
        schedule: Schedule::default(),
    };
    let mut rule = with_gate(probe.into());
    let (now, node) = (Instant::now(), node("1", "True"));
    rule.step(now, &node);
    let place = Place {
        rule: 0,
        round: 0,
        gate: 0,
        condition: 0,
    };
    let open = || Update {
        place,
        outcome: Outcome::Open("seen".into()),
    };
    rule.take(now, open());
    rule.step(now, &node);
    assert_eq!(rule.decision(), Decision::Ready);
    rule.paused(now);
    rule.take(now, open());
    rule.step(now, &node);
    assert_eq!(rule.decision(), Decision::Waiting);
}
