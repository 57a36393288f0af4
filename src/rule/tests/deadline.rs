//! A taint that is there for long: the deadline, and the report before it.

use super::*;
use crate::config::Deadline;

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
fn at_its_deadline_a_taint_is_kept_and_reported_once() {
    let now = Instant::now();
    let mut state = with_deadline(DeadlineAction::Keep);
    step(&mut state, now, Some(&tainted()), false);
    step(&mut state, now + 59 * SECOND, Some(&tainted()), false);
    let late = now + 60 * SECOND;
    assert_eq!(state.wake_at(), Some(late));
    let event = step(&mut state, late, Some(&tainted()), false);
    assert_eq!(event, Some(deadline(60 * SECOND, DeadlineAction::Keep)));
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
fn at_its_deadline_a_taint_is_removed_in_spite_of_closed_gates_if_the_rule_fails_open() {
    let now = Instant::now();
    let mut state = with_deadline(DeadlineAction::Remove);
    step(&mut state, now, Some(&tainted()), false);
    step(&mut state, now + 59 * SECOND, Some(&tainted()), false);
    assert_eq!(state.decision(), Decision::Waiting);
    let event = step(&mut state, now + 60 * SECOND, Some(&tainted()), false);
    assert_eq!(event, Some(deadline(60 * SECOND, DeadlineAction::Remove)));
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
fn a_wait_is_reported_once_after_a_minute_or_a_tenth_of_the_deadline_if_that_is_less() {
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
            let event = step(&mut state, now, Some(&tainted()), false);
            assert_eq!(event, Some(RuleEvent::LongWait));
            assert_eq!(state.wake_at(), deadline_at(&state));
            assert_eq!(step(&mut state, now, Some(&tainted()), false), None);
            // The next wait is another one.
            step(&mut state, now, Some(&clean()), false);
        }
    }
}

#[test]
fn a_wait_is_reported_only_while_the_rule_waits_and_not_after_the_deadline() {
    let now = Instant::now();
    let mut state = RuleState::new(
        Rule {
            stable_for: 3600 * SECOND,
            ..rule()
        },
        None,
    );
    step(&mut state, now, Some(&tainted()), true);
    let stabilizing = step(&mut state, now + 120 * SECOND, Some(&tainted()), true);
    assert_eq!(stabilizing, None);
    let closed = step(&mut state, now + 121 * SECOND, Some(&tainted()), false);
    assert_eq!(closed, Some(RuleEvent::LongWait));

    let mut state = with_deadline(DeadlineAction::Keep);
    step(&mut state, now, Some(&tainted()), false);
    // The process stood still until then.
    let late = now + 60 * SECOND;
    let event = step(&mut state, late, Some(&tainted()), false);
    assert_eq!(event, Some(deadline(60 * SECOND, DeadlineAction::Keep)));
    assert_eq!(step(&mut state, late, Some(&tainted()), false), None);
    assert_eq!(state.wake_at(), None);
}

#[test]
fn a_long_hold_is_reported_like_a_long_wait() {
    let now = Instant::now();
    let held = held();
    let mut state = RuleState::new(rule(), None);
    step(&mut state, now, Some(&held), true);
    step(&mut state, now, Some(&held), true);
    assert_eq!(state.decision(), Decision::Held);
    let event = step(&mut state, now + 60 * SECOND, Some(&held), true);
    assert_eq!(event, Some(RuleEvent::LongWait));
}

#[test]
fn an_event_at_the_time_of_a_deadline_is_reported_before_the_deadline() {
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
        Some(deadline(SECOND, DeadlineAction::Keep))
    );
    assert_eq!(step(&mut state, late, Some(&tainted()), true), None);
}
