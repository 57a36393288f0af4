//! A rule whose configuration changes while it runs.

use super::*;
use crate::config::{Deadline, Retaint};

const MINUTE: Duration = Duration::from_mins(1);

fn ready(now: Instant) -> RuleState {
    let mut state = RuleState::new(rule(), None);
    step(&mut state, now, Some(&tainted()), true);
    step(&mut state, now, Some(&tainted()), true);
    assert_eq!(state.decision(), Decision::Ready);
    state
}

#[test]
fn what_is_known_of_the_taint_stays_and_no_new_round_begins() {
    let start = Instant::now();
    let mut state = ready(start);
    let round = state.round();
    let version = Rule {
        stable_for: SECOND,
        ..rule()
    };
    state.reconfigure(start + MINUTE, version, State::Open);
    let event = step(&mut state, start + MINUTE, Some(&tainted()), true);
    assert_eq!(event, None, "the taint is not reported again");
    assert_eq!(
        (state.decision(), state.round()),
        (Decision::Ready, round),
        "the gates have been open for longer than a second"
    );
    assert_eq!(deadline_at(&state), Some(start + MINUTE * 10));
}

#[test]
fn a_decision_of_another_version_leads_to_no_change() {
    let now = Instant::now();
    let mut state = ready(now);
    state.reconfigure(now, rule(), State::Open);
    assert_eq!(state.decision(), Decision::Waiting);
    step(&mut state, now, Some(&tainted()), true);
    assert_eq!(state.decision(), Decision::Ready);
}

#[test]
fn a_gate_that_is_new_and_not_open_starts_stable_for_again() {
    let now = Instant::now();
    let version = Rule {
        stable_for: SECOND,
        ..rule()
    };
    let mut state = ready(now);
    state.reconfigure(now, version, State::Closed);
    assert_eq!(state.stable_at(), None);
    let later = now + MINUTE;
    step(&mut state, later, Some(&tainted()), true);
    let until = later + SECOND;
    assert_eq!(state.decision(), Decision::Stabilizing { until });
}

#[test]
fn another_deadline_is_reported_although_the_one_before_has_passed() {
    let start = Instant::now();
    let after = |after, action| Rule {
        deadline: Deadline { after, action },
        ..rule()
    };
    let mut state = RuleState::new(after(SECOND, DeadlineAction::Keep), None);
    step(&mut state, start, Some(&tainted()), false);
    let late = start + MINUTE;
    let event = step(&mut state, late, Some(&tainted()), false);
    assert_eq!(event, Some(deadline(SECOND, DeadlineAction::Keep)));

    let with_another_gate = Rule {
        dry_run: true,
        ..after(SECOND, DeadlineAction::Keep)
    };
    state.reconfigure(late, with_another_gate, State::Closed);
    assert_eq!(step(&mut state, late, Some(&tainted()), false), None);

    state.reconfigure(late, after(SECOND, DeadlineAction::Remove), State::Closed);
    let event = step(&mut state, late, Some(&tainted()), false);
    assert_eq!(event, Some(deadline(SECOND, DeadlineAction::Remove)));
    assert_eq!(state.decision(), Decision::Ready);

    state.reconfigure(
        late,
        after(MINUTE * 2, DeadlineAction::Remove),
        State::Closed,
    );
    assert_eq!(step(&mut state, late, Some(&tainted()), false), None);
    assert_eq!(state.decision(), Decision::Waiting);
}

#[test]
fn a_fight_continues_in_another_version_and_is_not_reported_again() {
    let now = Instant::now();
    let mut state = RuleState::new(rule(), None);
    let mut fights = 0;
    for _ in 0..6 {
        step(&mut state, now, Some(&tainted()), true);
        let event = step(&mut state, now, Some(&tainted()), true);
        fights += usize::from(event == Some(RuleEvent::Fight));
        if state.decision() == Decision::Ready {
            state.removed(now);
        }
    }
    assert_eq!(fights, 1);
    let version = Rule {
        dry_run: true,
        ..rule()
    };
    state.reconfigure(now, version, State::Open);
    assert_eq!(step(&mut state, now, Some(&tainted()), true), None);
    assert!(matches!(state.decision(), Decision::Limited { .. }));
}

#[test]
fn a_put_back_that_another_version_wanted_waits_for_the_decision_of_this_one() {
    let now = Instant::now();
    let watchful = Rule {
        retaint: Some(Retaint {
            after: MINUTE,
            key: None,
        }),
        ..rule()
    };
    let mut state = RuleState::new(watchful.clone(), None);
    step(&mut state, now, Some(&clean()), false);
    step(&mut state, now, Some(&clean()), false);
    step(&mut state, now + MINUTE, Some(&clean()), false);
    assert_eq!(state.decision(), Decision::Lapsed);
    state.reconfigure(now + MINUTE, watchful, State::Unknown);
    assert_eq!(state.decision(), Decision::Absent);
}
