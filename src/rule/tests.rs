mod another_version;
mod changes;
mod deadline;
mod pause;
mod retaint_timer;
mod time;

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Value, json};

use super::*;
use crate::config::{DeadlineAction, FileCheck, Probe, ProbeHandler, Schedule};
use crate::taint::{Effect, TaintMatcher};

const SECOND: Duration = Duration::from_secs(1);

pub(super) fn rule() -> Rule {
    let handler = ProbeHandler::File(FileCheck::new("/ready"));
    let probe = Probe {
        name: "ready".into(),
        handler,
        schedule: Schedule::default(),
    };
    let taint = TaintMatcher {
        key: "t".into(),
        value: None,
        effect: None,
    };
    Rule::new("cilium", taint, vec![probe.into()])
}

fn node(uid: &str, keys: &[(&str, &str)], labels: &Value) -> NodeView {
    let taints: Vec<_> = keys
        .iter()
        .map(|(key, effect)| json!({"key": key, "effect": effect}))
        .collect();
    let metadata = json!({"name": "node", "uid": uid, "resourceVersion": "1", "labels": labels});
    serde_json::from_value(json!({"metadata": metadata, "spec": {"taints": taints}})).unwrap()
}

fn tainted() -> NodeView {
    node("u", &[("t", "NoSchedule")], &json!({}))
}

fn clean() -> NodeView {
    node("u", &[], &json!({}))
}

/// As the agent does: records the state of the gates while they run, and then decides.
fn step(
    state: &mut RuleState,
    now: Instant,
    node: Option<&NodeView>,
    open: bool,
) -> Option<RuleEvent> {
    if state.runs_gates() {
        state.observe(now, if open { State::Open } else { State::Closed });
    }
    state.step(now, node)
}

#[test]
fn a_taint_with_a_gate_not_open_waits_and_is_ready_once_all_are_open() {
    let now = Instant::now();
    let mut state = RuleState::new(rule(), None);
    assert_eq!(
        step(&mut state, now, Some(&tainted()), false),
        Some(RuleEvent::Tainted)
    );
    assert_eq!(state.decision(), Decision::Waiting);
    assert_eq!(step(&mut state, now, Some(&tainted()), true), None);
    assert_eq!(state.decision(), Decision::Ready);
    step(&mut state, now, Some(&tainted()), false);
    assert_eq!(state.decision(), Decision::Waiting, "a gate closed again");
}

#[test]
fn the_state_of_the_gates_before_the_node_was_first_seen_counts() {
    let now = Instant::now();
    let mut state = RuleState::new(rule(), None);
    step(&mut state, now, None, true);
    assert_eq!((state.decision(), state.round()), (Decision::NoNode, 0));
    assert!(state.runs_gates());
    step(&mut state, now, Some(&tainted()), true);
    assert_eq!((state.decision(), state.round()), (Decision::Ready, 0));
}

#[test]
fn without_the_taint_nothing_is_to_be_done_and_gates_rest() {
    let mut state = RuleState::new(rule(), None);
    assert_eq!(
        step(&mut state, Instant::now(), Some(&clean()), false),
        None
    );
    assert_eq!(state.decision(), Decision::Absent);
    assert!(!state.runs_gates());
}

#[test]
fn a_taint_that_comes_back_starts_the_gates_afresh() {
    let now = Instant::now();
    let mut state = RuleState::new(rule(), None);
    step(&mut state, now, Some(&tainted()), true);
    step(&mut state, now, Some(&tainted()), true);
    state.removed(now);
    assert_eq!(
        step(&mut state, now, Some(&clean()), true),
        None,
        "it was us"
    );
    assert_eq!(
        step(&mut state, now, Some(&tainted()), true),
        Some(RuleEvent::Tainted)
    );
    assert_eq!(
        (state.decision(), state.round()),
        (Decision::Waiting, 1),
        "old evidence does not count"
    );
    step(&mut state, now, Some(&tainted()), true);
    assert_eq!(state.decision(), Decision::Ready);
}

#[test]
fn a_recreated_node_starts_the_gates_afresh_even_if_nobody_saw_it_without_the_taint() {
    let now = Instant::now();
    let mut state = RuleState::new(rule(), None);
    step(&mut state, now, Some(&tainted()), true);
    step(
        &mut state,
        now,
        Some(&node("another", &[("t", "NoSchedule")], &json!({}))),
        true,
    );
    assert_eq!((state.decision(), state.round()), (Decision::Waiting, 1));
}

#[test]
fn after_the_node_is_deleted_the_rule_waits_for_a_new_one() {
    let now = Instant::now();
    let mut state = RuleState::new(rule(), None);
    step(&mut state, now, Some(&tainted()), true);
    assert_eq!(step(&mut state, now, None, true), None);
    assert_eq!(state.decision(), Decision::NoNode);
}

#[test]
fn a_rule_without_gates_is_ready_at_once_each_time() {
    let now = Instant::now();
    let mut state = RuleState::new(
        Rule {
            gates: Vec::new(),
            ..rule()
        },
        None,
    );
    for _ in 0..2 {
        step(&mut state, now, Some(&tainted()), true);
        assert_eq!(state.decision(), Decision::Ready);
        state.removed(now);
        step(&mut state, now, Some(&clean()), true);
    }
}

#[test]
fn a_removal_that_karpenter_would_undo_is_held_until_it_has_registered_the_node() {
    let now = Instant::now();
    let keys = [
        ("t", "NoSchedule"),
        ("karpenter.sh/unregistered", "NoExecute"),
    ];
    let mut state = RuleState::new(rule(), None);
    step(&mut state, now, Some(&node("u", &keys, &json!({}))), true);
    assert_eq!(state.decision(), Decision::Held);
    step(
        &mut state,
        now,
        Some(&node(
            "u",
            &keys,
            &json!({"karpenter.sh/registered": "true"}),
        )),
        true,
    );
    assert_eq!(state.decision(), Decision::Ready);
    step(
        &mut state,
        now,
        Some(&node(
            "u",
            &keys,
            &json!({"karpenter.sh/do-not-sync-taints": "true"}),
        )),
        true,
    );
    assert_eq!(state.decision(), Decision::Ready);
}

#[test]
fn a_removal_by_somebody_else_is_reported_once_with_whether_it_was_too_early() {
    let now = Instant::now();
    for (open, ready) in [(false, false), (true, true)] {
        let mut state = RuleState::new(rule(), None);
        step(&mut state, now, Some(&tainted()), open);
        assert_eq!(
            step(&mut state, now, Some(&clean()), open),
            Some(RuleEvent::RemovedByOther { ready })
        );
        assert_eq!(step(&mut state, now, Some(&clean()), open), None);
    }
}

#[test]
fn the_value_of_an_adopted_taint_can_be_changed_by_others_too() {
    let now = Instant::now();
    let mut node = node("u", &[("back", "NoSchedule")], &json!({}));
    let mut state = RuleState::new(rule(), None);
    state.adopt(TaintMatcher::exactly(&node.taints[0]).unwrap());
    step(&mut state, now, Some(&node), false);
    node.taints[0].value = Some("other".into());
    let by = node.taints[0].clone();
    let event = step(&mut state, now, Some(&node), false);
    assert_eq!(event, Some(RuleEvent::ReplacedByOther { ready: false, by }));
}

#[test]
fn a_value_that_somebody_else_changes_is_reported_as_that_and_not_as_a_removal() {
    let now = Instant::now();
    let with_value = |value: &str, effect: &str| {
        let mut node = node("u", &[("t", effect)], &json!({}));
        node.taints[0].value = Some(value.into());
        node
    };
    for (ready, effect) in [(false, None), (true, Some(Effect::NoSchedule))] {
        let mut rule = rule();
        rule.taint.value = Some("a".into());
        rule.taint.effect = effect;
        let mut state = RuleState::new(rule, None);
        step(&mut state, now, Some(&with_value("a", "NoSchedule")), ready);
        let replaced = with_value("b", "NoSchedule");
        let event = step(&mut state, now, Some(&replaced), ready);
        let by = replaced.taints[0].clone();
        assert_eq!(event, Some(RuleEvent::ReplacedByOther { ready, by }));
        if effect.is_some() {
            step(&mut state, now, Some(&with_value("a", "NoSchedule")), ready);
            let other_effect = with_value("b", "NoExecute");
            let event = step(&mut state, now, Some(&other_effect), ready);
            assert!(matches!(event, Some(RuleEvent::RemovedByOther { .. })));
        }
    }
}

#[test]
fn a_node_that_the_selector_does_not_select_is_left_alone() {
    let now = Instant::now();
    let selector = BTreeMap::from([("pool".to_owned(), "a".to_owned())]);
    let mut state = RuleState::new(
        Rule {
            node_selector: selector,
            ..rule()
        },
        None,
    );
    step(&mut state, now, Some(&tainted()), true);
    assert_eq!(state.decision(), Decision::NotSelected);
    assert!(!state.runs_gates());
    let selected = node("u", &[("t", "NoSchedule")], &json!({"pool": "a"}));
    assert_eq!(
        step(&mut state, now, Some(&selected), false),
        Some(RuleEvent::Tainted)
    );
    assert_eq!(state.decision(), Decision::Waiting);
}

fn deadline(after: Duration, action: DeadlineAction) -> RuleEvent {
    RuleEvent::Deadline { after, action }
}

/// When the taint will have been there for too long.
fn deadline_at(state: &RuleState) -> Option<Instant> {
    state.taint_presence.deadline_at(state.rule.deadline)
}
