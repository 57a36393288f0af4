//! What the answers to a rule's own changes mean.

use super::*;
use crate::config::{Deadline, Retaint};
use crate::node::patch::{Change, addition, removal};
use crate::node::writes::Denied;
use crate::taint::Effect;

const AFTER: Duration = Duration::from_secs(30);

/// A rule whose taint is due to be removed.
fn ready(now: Instant) -> (RuleState, Change) {
    let mut state = RuleState::new(rule(), None);
    step(&mut state, now, Some(&tainted()), true);
    step(&mut state, now, Some(&tainted()), true);
    assert_eq!(state.wants(), Some(Action::Remove));
    let matcher = rule().taint;
    let change = removal(&tainted(), |_| Some((&matcher).into())).unwrap();
    (state, change)
}

/// A rule whose taint is due to be put back.
fn lapsed(now: Instant) -> (RuleState, Change) {
    let mut rule = rule();
    rule.taint.effect = Some(Effect::NoSchedule);
    rule.retaint = Some(Retaint {
        after: AFTER,
        key: None,
    });
    let change = addition(&clean(), &[rule.taint.to_taint()]).unwrap();
    let mut state = RuleState::new(rule, None);
    step(&mut state, now, Some(&clean()), false);
    step(&mut state, now, Some(&clean()), false);
    step(&mut state, now + AFTER, Some(&clean()), false);
    assert_eq!(state.wants(), Some(Action::PutBack));
    (state, change)
}

#[test]
fn an_accepted_change_is_reported_by_what_the_node_in_the_answer_has() {
    let now = Instant::now();
    let (mut state, change) = ready(now);
    assert!(state.is_changed_by(&change));
    let events = state.accepted(now + SECOND, &change, &clean());
    let removed = RuleEvent::Removed {
        taint: change.taints[0].clone(),
        since_seen: Some(SECOND),
        since_ready: Some(SECOND),
    };
    assert_eq!(
        (events, state.decision()),
        (vec![removed], Decision::Absent)
    );
    assert!(!state.is_changed_by(&change), "the taint is gone");

    let (mut state, change) = ready(now);
    let undone = |change: &Change| RuleEvent::Undone {
        action: change.action,
        taint: change.taints[0].clone(),
    };
    let events = state.accepted(now, &change, &tainted());
    assert_eq!(events, [undone(&change)]);

    let (mut state, change) = lapsed(now);
    let events = state.accepted(now + AFTER, &change, &tainted());
    assert_eq!(
        (events, state.decision()),
        (vec![RuleEvent::PutBack], Decision::Waiting)
    );
    let (mut state, change) = lapsed(now);
    let events = state.accepted(now + AFTER, &change, &clean());
    assert_eq!(
        (events, state.decision()),
        (vec![undone(&change)], Decision::Absent)
    );
}

#[test]
fn a_change_without_an_answer_is_the_rules_own_if_the_node_shows_it_before_a_read_shows_otherwise()
{
    let now = Instant::now();
    let removed = || RuleEvent::RemovedUnanswered {
        since_seen: Some(SECOND),
    };
    for (read, expected) in [
        (None, removed()),
        (Some(clean()), removed()),
        (Some(tainted()), RuleEvent::RemovedByOther { ready: true }),
    ] {
        let (mut state, change) = ready(now);
        state.unanswered(&change);
        if let Some(node) = read {
            state.read(&node);
        }
        let event = step(&mut state, now + SECOND, Some(&clean()), true);
        assert_eq!(event, Some(expected));
    }
    for (read, expected) in [
        (tainted(), RuleEvent::PutBack),
        (clean(), RuleEvent::Tainted),
    ] {
        let (mut state, change) = lapsed(now);
        state.unanswered(&change);
        state.read(&read);
        let event = step(&mut state, now + AFTER, Some(&tainted()), false);
        assert_eq!(event, Some(expected));
    }
}

#[test]
fn a_change_without_an_answer_to_another_node_explains_nothing() {
    let now = Instant::now();
    let (mut state, change) = lapsed(now);
    state.unanswered(&change);
    let recreated = node("another", &[("t", "NoSchedule")], &json!({}));
    let event = step(&mut state, now + AFTER, Some(&recreated), false);
    assert_eq!(event, Some(RuleEvent::Tainted));
}

fn denial(change: &Change) -> Denied {
    Denied {
        action: change.action,
        taint: change.taints[0].clone(),
        message: "403: no".into(),
        first: true,
        decided: true,
    }
}

#[test]
fn a_denial_is_known_until_the_change_is_accepted_or_the_taint_is_gone() {
    let now = Instant::now();
    let denied = |state: &mut RuleState, change: &Change| {
        let event = state.denied(&denial(change));
        assert!(matches!(event, Some(RuleEvent::Denied(_))));
        assert_eq!(state.denial(), Some("403: no"));
    };
    let (mut state, change) = ready(now);
    denied(&mut state, &change);
    step(&mut state, now, Some(&clean()), true);
    assert_eq!(state.denial(), None);
    let event = state.denied(&denial(&change));
    assert_eq!((event, state.denial()), (None, None), "there is no taint");

    let (mut state, change) = lapsed(now);
    denied(&mut state, &change);
    state.accepted(now + AFTER, &change, &tainted());
    assert_eq!(state.denial(), None);
}

#[test]
fn a_rule_waits_for_its_gates_or_for_what_keeps_it_from_the_removal() {
    let now = Instant::now();
    let (mut state, change) = ready(now);
    assert_eq!(state.waits_for("agent: 503".into()), "agent: 503");
    assert_eq!(
        state.waits_for(String::new()),
        "the removal, which has not succeeded yet"
    );
    state.denied(&denial(&change));
    let refused = "the server refuses the removal: 403: no";
    assert_eq!(state.waits_for(String::new()), refused);
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
