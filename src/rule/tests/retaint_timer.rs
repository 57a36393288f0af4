//! `retaint`: when the taint is put back.

use super::*;
use crate::config::Retaint;
use crate::taint::Effect;

const AFTER: Duration = Duration::from_secs(30);

fn watchful() -> Rule {
    let mut rule = rule();
    rule.taint.effect = Some(Effect::NoSchedule);
    rule.retaint = Some(Retaint {
        after: AFTER,
        key: None,
    });
    rule
}

/// A rule whose taint was absent when this process started.
fn without_taint(boot: Option<&str>) -> (RuleState, Instant) {
    let now = Instant::now();
    let boot = boot.map(|time| Boot {
        time: time.parse().unwrap(),
        until: now + SECOND,
    });
    let mut state = RuleState::new(watchful(), boot);
    state.step(now, Some(&aged()));
    assert_eq!(state.decision(), Decision::Absent);
    (state, now)
}

/// Without the taint, and created at noon.
fn aged() -> NodeView {
    let metadata = json!({"name": "node", "uid": "u", "resourceVersion": "1", "creationTimestamp": "2026-01-01T12:00:00Z"});
    serde_json::from_value(json!({"metadata": metadata})).unwrap()
}

/// The decision for this state of the gates.
fn gates(state: &mut RuleState, now: Instant, gates: State) -> Decision {
    state.observe(now, gates);
    state.step(now, Some(&aged()));
    state.decision()
}

#[test]
fn gates_run_on_without_the_taint_where_it_may_be_put_back() {
    let (state, _) = without_taint(None);
    assert!(state.runs_gates());
}

#[test]
fn the_taint_is_put_back_once_a_gate_has_been_closed_for_after_without_a_break() {
    let (mut state, now) = without_taint(None);
    let until = now + AFTER;
    assert_eq!(
        gates(&mut state, now, State::Closed),
        Decision::Lapsing { until }
    );
    assert_eq!(state.wake_at(), Some(until));
    let almost = now + 29 * SECOND;
    assert_eq!(gates(&mut state, almost, State::Open), Decision::Absent);
    let until = almost + AFTER;
    assert_eq!(
        gates(&mut state, almost, State::Closed),
        Decision::Lapsing { until }
    );
    assert_eq!(gates(&mut state, until, State::Closed), Decision::Lapsed);
}

#[test]
fn an_unknown_gate_never_puts_the_taint_back_and_ends_the_count() {
    let (mut state, now) = without_taint(None);
    let later = now + 100 * AFTER;
    assert_eq!(gates(&mut state, now, State::Unknown), Decision::Absent);
    assert_eq!(gates(&mut state, later, State::Unknown), Decision::Absent);
    gates(&mut state, later, State::Closed);
    assert_eq!(
        gates(&mut state, later + AFTER, State::Unknown),
        Decision::Absent
    );
}

#[test]
fn while_the_node_is_not_watched_the_count_stands_still() {
    let (mut state, now) = without_taint(None);
    gates(&mut state, now, State::Closed);
    let back = now + 100 * AFTER;
    state.unwatched(back);
    let until = back + AFTER;
    assert_eq!(
        gates(&mut state, back, State::Closed),
        Decision::Lapsing { until }
    );
}

#[test]
fn a_pause_ends_the_count() {
    let (mut state, now) = without_taint(None);
    gates(&mut state, now, State::Closed);
    state.start_afresh(now + AFTER);
    state.step(now + AFTER, Some(&aged()));
    assert_eq!(state.decision(), Decision::Absent);
}

#[test]
fn a_taint_that_was_put_back_is_removed_again_when_the_gates_open_and_can_be_put_back_again() {
    let (mut state, mut now) = without_taint(None);
    for _ in 0..2 {
        gates(&mut state, now, State::Closed);
        now += AFTER;
        assert_eq!(gates(&mut state, now, State::Closed), Decision::Lapsed);
        state.put_back(now);
        assert_eq!(
            step(&mut state, now, Some(&tainted()), false),
            None,
            "it was us"
        );
        assert_eq!(state.decision(), Decision::Waiting);
        step(&mut state, now, Some(&tainted()), true);
        assert_eq!(state.decision(), Decision::Ready);
        state.removed(now);
        assert_eq!(gates(&mut state, now, State::Open), Decision::Absent);
    }
}

#[test]
fn a_taint_that_somebody_removes_after_the_put_back_stays_away_until_the_gates_have_been_open() {
    let (mut state, now) = without_taint(None);
    gates(&mut state, now, State::Closed);
    gates(&mut state, now + AFTER, State::Closed);
    state.put_back(now + AFTER);
    assert_eq!(
        step(&mut state, now + AFTER, Some(&aged()), false),
        Some(RuleEvent::RemovedByOther { ready: false })
    );
    let later = now + 100 * AFTER;
    assert_eq!(gates(&mut state, later, State::Closed), Decision::Absent);
    gates(&mut state, later, State::Open);
    gates(&mut state, later, State::Closed);
    assert_eq!(
        gates(&mut state, later + AFTER, State::Closed),
        Decision::Lapsed
    );
}

#[test]
fn a_put_back_that_the_server_undoes_is_not_repeated_until_the_gates_have_been_open() {
    let (mut state, now) = without_taint(None);
    gates(&mut state, now, State::Closed);
    let mut now = now + AFTER;
    assert_eq!(gates(&mut state, now, State::Closed), Decision::Lapsed);
    state.put_back_undone();
    let nothing = step(&mut state, now, Some(&aged()), false);
    assert_eq!((state.decision(), nothing), (Decision::Absent, None));
    now += 100 * AFTER;
    assert_eq!(gates(&mut state, now, State::Closed), Decision::Absent);
    gates(&mut state, now, State::Open);
    gates(&mut state, now, State::Closed);
    now += AFTER;
    assert_eq!(gates(&mut state, now, State::Closed), Decision::Lapsed);
}

#[test]
fn after_a_reboot_of_the_node_the_taint_is_put_back_at_the_first_closed_gate() {
    for (boot, expected) in [
        (Some("2026-01-01T12:01:01Z"), true),
        (Some("2026-01-01T12:00:59Z"), false),
        (Some("2026-01-01T11:59:00Z"), false),
        (None, false),
    ] {
        let (mut state, now) = without_taint(boot);
        let decision = gates(&mut state, now, State::Closed);
        assert_eq!(decision == Decision::Lapsed, expected, "{boot:?}");
    }
}

#[test]
fn a_reboot_is_over_once_every_gate_has_been_open() {
    let (mut state, now) = without_taint(Some("2026-01-02T00:00:00Z"));
    gates(&mut state, now, State::Open);
    let until = now + AFTER;
    assert_eq!(
        gates(&mut state, now, State::Closed),
        Decision::Lapsing { until }
    );
}

#[test]
fn without_retaint_it_is_never_put_back() {
    let now = Instant::now();
    let mut state = RuleState::new(rule(), None);
    state.step(now, Some(&aged()));
    gates(&mut state, now, State::Closed);
    assert_eq!(
        gates(&mut state, now + 100 * AFTER, State::Closed),
        Decision::Absent
    );
}

#[test]
fn what_was_closed_before_the_taint_went_does_not_count() {
    let now = Instant::now();
    let mut state = RuleState::new(watchful(), None);
    step(&mut state, now, Some(&tainted()), false);
    let removed_at = now + 100 * AFTER;
    step(&mut state, removed_at, Some(&tainted()), false);
    step(&mut state, removed_at, Some(&aged()), false);
    let until = removed_at + AFTER;
    assert_eq!(state.decision(), Decision::Lapsing { until });
}

#[test]
fn beside_the_same_taint_with_another_value_there_is_nothing_to_put_back() {
    let now = Instant::now();
    let mut rule = watchful();
    rule.taint.value = Some("mine".into());
    let mut state = RuleState::new(rule, None);
    let metadata = json!({"name": "node", "uid": "u", "resourceVersion": "1"});
    let taints = json!([{"key": "t", "value": "theirs", "effect": "NoSchedule"}]);
    let node = serde_json::from_value(json!({"metadata": metadata, "spec": {"taints": taints}}));
    let node: NodeView = node.unwrap();
    step(&mut state, now, Some(&node), false);
    step(&mut state, now, Some(&node), false);
    step(&mut state, now + AFTER, Some(&node), false);
    assert_eq!(state.decision(), Decision::Absent);
}

#[test]
fn a_reboot_is_over_after_some_time_even_if_gates_are_closed() {
    let (mut state, now) = without_taint(Some("2026-01-02T00:00:00Z"));
    gates(&mut state, now, State::Unknown);
    let late = now + 2 * SECOND;
    let until = late + AFTER;
    assert_eq!(
        gates(&mut state, late, State::Closed),
        Decision::Lapsing { until }
    );
}

#[test]
fn a_reboot_is_over_for_a_rule_that_had_no_retaint_then() {
    let now = Instant::now();
    let boot = Boot {
        time: "2026-01-02T00:00:00Z".parse().unwrap(),
        until: now + SECOND,
    };
    let mut state = RuleState::new(rule(), Some(boot));
    state.step(now, Some(&aged()));
    state.reconfigure(now, watchful(), State::Unknown);
    let until = now + AFTER;
    assert_eq!(
        gates(&mut state, now, State::Closed),
        Decision::Lapsing { until }
    );
}
