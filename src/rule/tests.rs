use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::*;
use crate::config::{Check, Deadline, DeadlineAction, FileCheck, Probe, Schedule};
use crate::taint::TaintMatcher;

const SECOND: Duration = Duration::from_secs(1);

fn rule() -> Rule {
    let check = Check::File(FileCheck {
        path: "/ready".into(),
        newer_than_boot: false,
    });
    let probe = Probe {
        name: "ready".into(),
        check,
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

/// As the agent does: what the gates say while they run, and then a decision.
fn step(
    state: &mut RuleState,
    now: Instant,
    node: Option<&NodeView>,
    open: bool,
) -> Option<Occurrence> {
    if state.decision().runs_gates() {
        state.observe(now, open);
    }
    state.step(now, node)
}

#[test]
fn a_taint_with_a_gate_not_open_waits_and_is_ready_once_all_are_open() {
    let now = Instant::now();
    let mut state = RuleState::new(rule());
    assert_eq!(
        step(&mut state, now, Some(&tainted()), false),
        Some(Occurrence::Tainted)
    );
    assert_eq!(state.decision(), Decision::Waiting);
    assert_eq!(step(&mut state, now, Some(&tainted()), true), None);
    assert_eq!(state.decision(), Decision::Ready);
    step(&mut state, now, Some(&tainted()), false);
    assert_eq!(state.decision(), Decision::Waiting, "a gate closed again");
}

#[test]
fn what_the_gates_said_before_the_node_was_first_seen_counts() {
    let now = Instant::now();
    let mut state = RuleState::new(rule());
    step(&mut state, now, None, true);
    assert_eq!((state.decision(), state.round()), (Decision::NoNode, 0));
    assert!(state.decision().runs_gates());
    step(&mut state, now, Some(&tainted()), true);
    assert_eq!((state.decision(), state.round()), (Decision::Ready, 0));
}

#[test]
fn without_the_taint_nothing_is_to_be_done_and_gates_rest() {
    let mut state = RuleState::new(rule());
    assert_eq!(
        step(&mut state, Instant::now(), Some(&clean()), false),
        None
    );
    assert_eq!(state.decision(), Decision::Absent);
    assert!(!state.decision().runs_gates());
}

#[test]
fn a_taint_that_comes_back_starts_the_gates_afresh() {
    let now = Instant::now();
    let mut state = RuleState::new(rule());
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
        Some(Occurrence::Tainted)
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
    let mut state = RuleState::new(rule());
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
fn a_deleted_node_is_waited_for_and_old_knowledge_is_not_acted_on() {
    let now = Instant::now();
    let mut state = RuleState::new(rule());
    step(&mut state, now, Some(&tainted()), true);
    assert_eq!(step(&mut state, now, None, true), None);
    assert_eq!(state.decision(), Decision::NoNode);
}

#[test]
fn every_gate_must_have_been_open_without_a_break_for_stable_for() {
    let now = Instant::now();
    let mut state = RuleState::new(Rule {
        stable_for: 10 * SECOND,
        ..rule()
    });
    step(&mut state, now, Some(&tainted()), false);
    step(&mut state, now, Some(&tainted()), true);
    assert_eq!(
        state.decision(),
        Decision::Stabilizing {
            until: now + 10 * SECOND
        }
    );
    step(&mut state, now + 9 * SECOND, Some(&tainted()), false);
    step(&mut state, now + 9 * SECOND, Some(&tainted()), true);
    assert_eq!(
        state.decision().until(),
        Some(now + 19 * SECOND),
        "the window restarts"
    );
    step(&mut state, now + 19 * SECOND, Some(&tainted()), true);
    assert_eq!(state.decision(), Decision::Ready);
}

#[test]
fn a_gate_that_closes_and_opens_between_two_decisions_starts_stable_for_again() {
    let now = Instant::now();
    let mut state = RuleState::new(Rule {
        stable_for: 10 * SECOND,
        ..rule()
    });
    step(&mut state, now, Some(&tainted()), true);
    state.observe(now + 5 * SECOND, false);
    state.observe(now + 6 * SECOND, true);
    state.step(now + 12 * SECOND, Some(&tainted()));
    assert_eq!(state.decision().until(), Some(now + 16 * SECOND));
}

#[test]
fn a_pause_in_which_nothing_was_evaluated_does_not_count_towards_stable_for() {
    let now = Instant::now();
    let mut state = RuleState::new(Rule {
        stable_for: 10 * SECOND,
        ..rule()
    });
    step(&mut state, now, Some(&tainted()), true);
    state.paused(now + 30 * SECOND);
    state.step(now + 30 * SECOND, Some(&tainted()));
    assert_eq!(state.decision().until(), Some(now + 40 * SECOND));
}

#[test]
fn a_recreated_node_is_no_fight() {
    let now = Instant::now();
    let mut state = RuleState::new(rule());
    for uid in ["1", "2", "3", "4", "5", "6", "7"] {
        let node = node(uid, &[("t", "NoSchedule")], &json!({}));
        step(&mut state, now, Some(&node), true);
        step(&mut state, now, Some(&node), true);
        assert_eq!(state.decision(), Decision::Ready, "{uid}");
        state.removed(now);
    }
}

#[test]
fn a_rule_without_gates_is_ready_at_once_each_time() {
    let now = Instant::now();
    let mut state = RuleState::new(Rule {
        gates: Vec::new(),
        ..rule()
    });
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
    let mut state = RuleState::new(rule());
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
fn a_taint_that_somebody_else_removes_is_told_once_with_whether_it_was_too_early() {
    let now = Instant::now();
    for (open, ready) in [(false, false), (true, true)] {
        let mut state = RuleState::new(rule());
        step(&mut state, now, Some(&tainted()), open);
        assert_eq!(
            step(&mut state, now, Some(&clean()), open),
            Some(Occurrence::RemovedByOther { ready })
        );
        assert_eq!(step(&mut state, now, Some(&clean()), open), None);
    }
}

#[test]
fn a_taint_put_back_again_and_again_is_removed_five_times_at_once_and_then_every_ten_seconds() {
    let mut now = Instant::now();
    let mut state = RuleState::new(rule());
    let mut fights = 0;
    let mut come_back = |state: &mut RuleState, now| {
        let occurrences = [false, true].map(|open| step(state, now, Some(&tainted()), open));
        fights += occurrences
            .iter()
            .filter(|occurrence| **occurrence == Some(Occurrence::Fight))
            .count();
        state.decision()
    };
    for _ in 0..5 {
        assert_eq!(come_back(&mut state, now), Decision::Ready);
        state.removed(now);
    }
    for _ in 0..3 {
        let Decision::Limited { until } = come_back(&mut state, now) else {
            panic!("{:?}", state.decision())
        };
        assert_eq!(until, now + 10 * SECOND);
        now = until;
        assert_eq!(
            come_back(&mut state, now),
            Decision::Ready,
            "slower, but it never stops"
        );
        state.removed(now);
    }
    now += 100 * SECOND;
    for _ in 0..5 {
        assert_eq!(
            come_back(&mut state, now),
            Decision::Ready,
            "after a quiet time it is as before"
        );
        state.removed(now);
    }
    assert_eq!(fights, 3);
}

#[test]
fn a_node_that_the_selector_does_not_select_is_left_alone() {
    let now = Instant::now();
    let selector = BTreeMap::from([("pool".to_owned(), "a".to_owned())]);
    let mut state = RuleState::new(Rule {
        node_selector: selector,
        ..rule()
    });
    step(&mut state, now, Some(&tainted()), true);
    assert_eq!(state.decision(), Decision::NotSelected);
    assert!(!state.decision().runs_gates());
    let selected = node("u", &[("t", "NoSchedule")], &json!({"pool": "a"}));
    assert_eq!(
        step(&mut state, now, Some(&selected), false),
        Some(Occurrence::Tainted)
    );
    assert_eq!(state.decision(), Decision::Waiting);
}

fn with_deadline(action: DeadlineAction) -> RuleState {
    let deadline = Deadline {
        after: 60 * SECOND,
        action,
    };
    RuleState::new(Rule {
        deadline,
        stable_for: 10 * SECOND,
        ..rule()
    })
}

#[test]
fn at_its_deadline_a_taint_is_kept_and_told_of_once() {
    let now = Instant::now();
    let mut state = with_deadline(DeadlineAction::Keep);
    step(&mut state, now, Some(&tainted()), false);
    assert_eq!(state.wake_at(), Some(now + 60 * SECOND));
    let late = now + 60 * SECOND;
    let told = step(&mut state, late, Some(&tainted()), false);
    assert_eq!(told, Some(Occurrence::Deadline(DeadlineAction::Keep)));
    assert_eq!(
        (state.decision(), state.wake_at()),
        (Decision::Waiting, None)
    );
    assert_eq!(
        step(&mut state, late + SECOND, Some(&tainted()), false),
        None
    );
}

#[test]
fn at_its_deadline_a_taint_is_removed_whatever_the_gates_say_if_the_rule_says_so() {
    let now = Instant::now();
    let mut state = with_deadline(DeadlineAction::Remove);
    step(&mut state, now, Some(&tainted()), false);
    step(&mut state, now + 59 * SECOND, Some(&tainted()), false);
    assert_eq!(state.decision(), Decision::Waiting);
    let told = step(&mut state, now + 60 * SECOND, Some(&tainted()), false);
    assert_eq!(told, Some(Occurrence::Deadline(DeadlineAction::Remove)));
    assert_eq!(state.decision(), Decision::Ready);
}

#[test]
fn a_hold_outranks_a_deadline() {
    let now = Instant::now();
    let keys = [
        ("t", "NoSchedule"),
        ("karpenter.sh/unregistered", "NoExecute"),
    ];
    let held = node("u", &keys, &json!({}));
    let mut state = with_deadline(DeadlineAction::Remove);
    step(&mut state, now, Some(&held), false);
    step(&mut state, now + 60 * SECOND, Some(&held), false);
    assert_eq!(state.decision(), Decision::Held);
}

#[test]
fn a_deadline_counts_from_when_the_taint_was_first_seen_since_it_was_absent() {
    let now = Instant::now();
    let mut state = with_deadline(DeadlineAction::Keep);
    step(&mut state, now, Some(&tainted()), false);
    step(&mut state, now + 30 * SECOND, Some(&clean()), false);
    assert_eq!(state.wake_at(), None);
    step(&mut state, now + 40 * SECOND, Some(&tainted()), false);
    assert_eq!(state.wake_at(), Some(now + 100 * SECOND));
    step(
        &mut state,
        now + 50 * SECOND,
        Some(&node("another", &[("t", "NoSchedule")], &json!({}))),
        false,
    );
    assert_eq!(
        state.wake_at(),
        Some(now + 110 * SECOND),
        "another Node has a deadline of its own"
    );
}
