//! What time does to a rule: `stableFor`, pauses, and taints that come back too often.

use super::*;

fn with_stable_for(stable_for: Duration) -> RuleState {
    let rule = Rule {
        stable_for,
        ..rule()
    };
    RuleState::new(rule, None)
}

#[test]
fn every_gate_must_have_been_open_without_a_break_for_stable_for() {
    let now = Instant::now();
    let mut state = with_stable_for(10 * SECOND);
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
    let mut state = with_stable_for(10 * SECOND);
    step(&mut state, now, Some(&tainted()), true);
    state.observe(now + 5 * SECOND, State::Closed);
    state.observe(now + 6 * SECOND, State::Open);
    state.step(now + 12 * SECOND, Some(&tainted()));
    assert_eq!(state.decision().until(), Some(now + 16 * SECOND));
}

#[test]
fn a_pause_in_which_nothing_was_evaluated_does_not_count_towards_stable_for() {
    let now = Instant::now();
    let mut state = with_stable_for(10 * SECOND);
    step(&mut state, now, Some(&tainted()), true);
    let round = state.round();
    state.start_afresh(now + 30 * SECOND);
    state.step(now + 30 * SECOND, Some(&tainted()));
    assert_eq!(
        (state.decision(), state.round()),
        (Decision::Waiting, round + 1),
        "the gates are asked again"
    );
}

#[test]
fn a_recreated_node_is_no_fight() {
    let now = Instant::now();
    let mut state = RuleState::new(rule(), None);
    for uid in ["1", "2", "3", "4", "5", "6", "7"] {
        let node = node(uid, &[("t", "NoSchedule")], &json!({}));
        step(&mut state, now, Some(&node), true);
        step(&mut state, now, Some(&node), true);
        assert_eq!(state.decision(), Decision::Ready, "{uid}");
        state.removed(now);
    }
}

#[test]
fn a_taint_put_back_again_and_again_is_removed_five_times_at_once_and_then_every_ten_seconds() {
    let mut now = Instant::now();
    let mut state = RuleState::new(rule(), None);
    let mut fights = 0;
    let mut come_back = |state: &mut RuleState, now| {
        let events = [false, true].map(|open| step(state, now, Some(&tainted()), open));
        fights += events
            .iter()
            .filter(|event| **event == Some(RuleEvent::Fight))
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
