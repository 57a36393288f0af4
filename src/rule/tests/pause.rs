//! Pauses of the process.

use super::*;
use crate::boot::Moment;
use crate::config::Retaint;
use crate::rule::Pause;

const SHORT: Pause = Pause {
    unseen: Duration::from_secs(2),
    is_long: false,
};

fn stabilizing(now: Instant, stable_for: Duration) -> RuleState {
    let rule = Rule {
        stable_for,
        ..rule()
    };
    let mut state = RuleState::new(rule, None);
    step(&mut state, now, Some(&tainted()), true);
    state
}

/// kubernetes#113081: CLOCK_MONOTONIC stands still while a machine is suspended.
#[test]
fn a_loop_that_wakes_late_was_paused_by_the_clock_that_runs_on_while_the_machine_is_suspended() {
    let start = Moment::now();
    let pause = |unseen, is_long| {
        Some(Pause {
            unseen: Duration::from_secs(unseen),
            is_long,
        })
    };
    for (awake, suspended, expected) in [
        (0, 0, None),
        (1, 0, None),
        (2, 0, None),
        (1, 1, None),
        (3, 0, pause(2, false)),
        (3, 1, pause(2, false)),
        (10, 0, pause(9, false)),
        (11, 0, pause(10, true)),
        (1, 2, pause(0, true)),
        (0, 3, pause(0, true)),
        (1, 3600, pause(0, true)),
    ] {
        let now = Moment {
            awake: start.awake + awake * SECOND,
            elapsed: start.elapsed + (awake + suspended) * SECOND,
            ..start
        };
        let seen = Pause::between(start, now);
        assert_eq!(seen, expected, "awake {awake}, suspended {suspended}");
    }
}

/// What some gates found before a pause must not count when the last one opens after it.
#[test]
fn a_pause_matters_from_before_the_first_gate_opens_until_the_taint_is_gone() {
    let now = Instant::now();
    let without_gates = Rule {
        gates: Vec::new(),
        ..rule()
    };
    for (what, rule, node, open, expected) in [
        ("no Node yet", rule(), None, false, true),
        ("a gate is closed", rule(), Some(tainted()), false, true),
        ("every gate is open", rule(), Some(tainted()), true, true),
        ("no taint", rule(), Some(clean()), true, false),
        ("no gates", without_gates, Some(tainted()), true, false),
    ] {
        let mut state = RuleState::new(rule, None);
        step(&mut state, now, node.as_ref(), open);
        step(&mut state, now, node.as_ref(), open);
        assert_eq!(state.counts_on_gates(), expected, "{what}");
    }
}

#[test]
fn a_single_pause_and_each_long_one_start_the_gates_afresh() {
    let start = Instant::now();
    let long = Pause {
        is_long: true,
        ..SHORT
    };
    let mut state = stabilizing(start, 10 * SECOND);
    let mut now = start;
    for (after, pause, afresh) in [
        (3, SHORT, true),
        (3, SHORT, false),
        (3, long, true),
        (69, SHORT, false),
        (70, SHORT, true),
    ] {
        now += after * SECOND;
        let round = state.round();
        assert_eq!(
            state.paused(now, pause),
            afresh,
            "after {after} s: {pause:?}"
        );
        assert_eq!(state.round(), round + u64::from(afresh));
        assert_eq!(state.stable_at().is_none(), afresh);
        step(&mut state, now, Some(&tainted()), true);
    }
}

#[test]
fn a_process_that_is_starved_without_end_gets_a_rule_ready_by_the_time_that_it_sees() {
    let start = Instant::now();
    let mut state = stabilizing(start, 10 * SECOND);
    let mut now = start;
    let mut pauses = 0;
    while state.decision() != Decision::Ready {
        // A second is seen, and two are not.
        now += 3 * SECOND;
        pauses += 1;
        assert!(pauses < 20, "never ready");
        state.paused(now, SHORT);
        step(&mut state, now, Some(&tainted()), true);
    }
    assert_eq!(pauses, 1 + 10);
    state.observe(now, State::Closed);
    state.paused(now, SHORT);
    step(&mut state, now, Some(&tainted()), false);
    assert_eq!(state.decision(), Decision::Waiting);
}

#[test]
fn a_pause_never_dates_a_gate_into_the_future() {
    let start = Instant::now();
    let mut state = stabilizing(start, 10 * SECOND);
    state.paused(start, SHORT);
    let now = start + SECOND;
    step(&mut state, now, Some(&tainted()), true);
    state.paused(now, SHORT);
    assert_eq!(state.stable_at(), Some(now + 10 * SECOND));
}

#[test]
fn what_nobody_saw_does_not_count_for_retaint_either() {
    let start = Instant::now();
    let rule = Rule {
        retaint: Some(Retaint::default()),
        ..rule()
    };
    let mut state = RuleState::new(rule, None);
    step(&mut state, start, Some(&clean()), false);
    state.paused(start, SHORT);
    step(&mut state, start, Some(&clean()), false);
    let until = state.decision().until();
    assert_eq!(until, Some(start + 30 * SECOND));
    state.paused(start + 10 * SECOND, SHORT);
    step(&mut state, start + 10 * SECOND, Some(&clean()), false);
    assert_eq!(state.decision().until(), Some(start + 32 * SECOND));
}
