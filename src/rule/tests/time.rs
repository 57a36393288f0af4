//! What time does to a rule: `stableFor`, pauses, the deadline, and taints that come back too often.

use super::*;
use crate::config::Deadline;

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
    state.paused(now + 30 * SECOND);
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

/// Tainted, and not registered by Karpenter yet.
fn held() -> NodeView {
    let keys = [
        ("t", "NoSchedule"),
        ("karpenter.sh/unregistered", "NoExecute"),
    ];
    node("u", &keys, &json!({}))
}

fn with_deadline(action: DeadlineAction) -> RuleState {
    let deadline = Deadline {
        after: 60 * SECOND,
        action,
    };
    RuleState::new(
        Rule {
            deadline,
            stable_for: 10 * SECOND,
            ..rule()
        },
        None,
    )
}

#[test]
fn at_its_deadline_a_taint_is_kept_and_told_of_once() {
    let now = Instant::now();
    let mut state = with_deadline(DeadlineAction::Keep);
    step(&mut state, now, Some(&tainted()), false);
    step(&mut state, now + 59 * SECOND, Some(&tainted()), false);
    let late = now + 60 * SECOND;
    assert_eq!(state.wake_at(), Some(late));
    let told = step(&mut state, late, Some(&tainted()), false);
    assert_eq!(told, deadline(60 * SECOND, DeadlineAction::Keep));
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
    assert_eq!(told, deadline(60 * SECOND, DeadlineAction::Remove));
    assert_eq!(state.decision(), Decision::Ready);
}

#[test]
fn a_hold_outranks_a_deadline() {
    let now = Instant::now();
    let held = held();
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
    assert_eq!(deadline_at(&state), Some(now + 100 * SECOND));
    step(
        &mut state,
        now + 50 * SECOND,
        Some(&node("another", &[("t", "NoSchedule")], &json!({}))),
        false,
    );
    assert_eq!(
        deadline_at(&state),
        Some(now + 110 * SECOND),
        "another Node has a deadline of its own"
    );
}

#[test]
fn a_wait_is_told_of_once_after_a_minute_or_a_tenth_of_the_deadline_if_that_is_less() {
    for (after, long) in [(24 * 3600, 60), (600, 60), (60, 6)] {
        let mut now = Instant::now();
        let deadline = Deadline {
            after: after * SECOND,
            ..Deadline::default()
        };
        let mut state = RuleState::new(Rule { deadline, ..rule() }, None);
        for _ in 0..2 {
            step(&mut state, now, Some(&tainted()), false);
            assert_eq!(state.wake_at(), Some(now + long * SECOND));
            let early = now + (long - 1) * SECOND;
            assert_eq!(step(&mut state, early, Some(&tainted()), false), None);
            now += long * SECOND;
            let told = step(&mut state, now, Some(&tainted()), false);
            assert_eq!(told, Some(RuleEvent::LongWait));
            assert_eq!(state.wake_at(), deadline_at(&state));
            assert_eq!(step(&mut state, now, Some(&tainted()), false), None);
            // The next wait is another one.
            step(&mut state, now, Some(&clean()), false);
        }
    }
}

#[test]
fn a_wait_is_told_of_only_while_something_is_waited_for_and_not_after_the_deadline() {
    let now = Instant::now();
    let mut state = with_stable_for(3600 * SECOND);
    step(&mut state, now, Some(&tainted()), true);
    let stabilizing = step(&mut state, now + 120 * SECOND, Some(&tainted()), true);
    assert_eq!(stabilizing, None);
    let closed = step(&mut state, now + 121 * SECOND, Some(&tainted()), false);
    assert_eq!(closed, Some(RuleEvent::LongWait));

    let mut state = with_deadline(DeadlineAction::Keep);
    step(&mut state, now, Some(&tainted()), false);
    // The process stood still until then.
    let late = now + 60 * SECOND;
    let told = step(&mut state, late, Some(&tainted()), false);
    assert_eq!(told, deadline(60 * SECOND, DeadlineAction::Keep));
    assert_eq!(step(&mut state, late, Some(&tainted()), false), None);
    assert_eq!(state.wake_at(), None);
}

#[test]
fn a_long_hold_is_told_of_like_a_long_wait() {
    let now = Instant::now();
    let held = held();
    let mut state = RuleState::new(rule(), None);
    step(&mut state, now, Some(&held), true);
    step(&mut state, now, Some(&held), true);
    assert_eq!(state.decision(), Decision::Held);
    let told = step(&mut state, now + 60 * SECOND, Some(&held), true);
    assert_eq!(told, Some(RuleEvent::LongWait));
}

#[test]
fn what_happens_as_a_deadline_passes_is_told_first_and_then_the_deadline() {
    let now = Instant::now();
    let mut state = RuleState::new(
        Rule {
            deadline: Deadline {
                after: SECOND,
                action: DeadlineAction::Keep,
            },
            ..rule()
        },
        None,
    );
    for _ in 0..5 {
        step(&mut state, now, Some(&tainted()), true);
        step(&mut state, now, Some(&tainted()), true);
        state.removed(now);
        step(&mut state, now, Some(&clean()), true);
    }
    step(&mut state, now, Some(&tainted()), false);
    let late = now + SECOND;
    assert_eq!(
        step(&mut state, late, Some(&tainted()), true),
        Some(RuleEvent::Fight)
    );
    assert!(state.wake_at().is_some_and(|at| at <= late));
    assert_eq!(
        step(&mut state, late, Some(&tainted()), true),
        deadline(SECOND, DeadlineAction::Keep)
    );
    assert_eq!(step(&mut state, late, Some(&tainted()), true), None);
}

#[test]
fn a_rule_is_ready_for_a_taint_no_sooner_than_the_taint_is_seen() {
    let start = Instant::now();
    let mut state = RuleState::new(rule(), None);
    step(&mut state, start, None, true);
    assert_eq!(state.since_ready(start), None, "there is no Node");
    let seen = start + 3600 * SECOND;
    step(&mut state, seen, Some(&tainted()), true);
    assert_eq!(state.decision(), Decision::Ready);
    assert_eq!(state.since_ready(seen + SECOND), Some(SECOND));
}

#[test]
fn a_rule_that_fails_open_was_not_ready_even_if_it_lacks_stable_for_alone() {
    let start = Instant::now();
    let mut state = RuleState::new(
        Rule {
            deadline: Deadline {
                after: SECOND,
                action: DeadlineAction::Remove,
            },
            stable_for: 3600 * SECOND,
            ..rule()
        },
        None,
    );
    step(&mut state, start, Some(&tainted()), true);
    step(&mut state, start + SECOND, Some(&tainted()), true);
    assert_eq!(state.decision(), Decision::Ready);
    assert_eq!(state.since_ready(start + SECOND), None);
}
