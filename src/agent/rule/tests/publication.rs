//! The condition of a rule at work.

use serde_json::{Value, json};

use super::*;
use crate::config::PublishCondition;

const KIND: &str = "readiness.k8s.io/NetworkReady";
const SECOND: Duration = Duration::from_secs(1);

/// The Node with this condition alone, if there is one.
fn with_condition(condition: Option<&PublishedCondition>) -> NodeView {
    let metadata = json!({"name": "node", "uid": "u", "resourceVersion": "1"});
    let node = serde_json::from_value(json!({"metadata": metadata})).unwrap();
    let Some(condition) = condition else {
        return node;
    };
    let patch = condition.patch(&node, false, Timestamp::UNIX_EPOCH);
    let status = &patch.unwrap()["status"];
    serde_json::from_value(json!({"metadata": metadata, "status": status})).unwrap()
}

fn open() -> PublishedCondition {
    PublishedCondition::new(KIND, State::Open, true, "")
}

fn refused() -> ApiError {
    ApiError::Refused {
        code: 403,
        message: "no".into(),
        detailed: true,
        retry_after: None,
    }
}

/// A rule that publishes a condition of this type, with its gate open.
fn publishing(now: Instant) -> RuleRunner {
    let mut rule = on_ready();
    publish(&mut rule, now, KIND);
    rule.step(now, &node("1", "True"));
    rule
}

fn publish(rule: &mut RuleRunner, now: Instant, kind: &str) {
    let version = Rule {
        publish_condition: Some(PublishCondition { kind: kind.into() }),
        ..rule.state.rule().clone()
    };
    rule.reconfigure(now, version);
}

fn next(rule: &mut RuleRunner, now: Instant, node: Option<&NodeView>) -> Next<ConditionWrite> {
    rule.next_condition(now, node, &NodeFreshness::default(), None)
}

/// A rule whose write the server has just refused.
fn refused_rule(now: Instant) -> RuleRunner {
    let mut rule = publishing(now);
    let silent = with_condition(None);
    let first = next(&mut rule, now, Some(&silent));
    assert!(matches!(first, Next::Send(_)));
    rule.condition_answered(now, KIND, Some(&refused()));
    let again = next(&mut rule, now, Some(&silent));
    assert!(matches!(again, Next::Wait(Some(at)) if at > now));
    rule
}

/// A time that is past and stays so would have the loop come round without end.
#[tokio::test]
async fn without_a_node_no_write_is_due_at_any_time() {
    let now = Instant::now();
    let mut rule = refused_rule(now);
    for after in [0, 1, 100] {
        let now = now + after * SECOND;
        assert_eq!(next(&mut rule, now, None), Next::Wait(None));
    }
}

#[tokio::test]
async fn the_failure_to_write_a_condition_is_in_the_status_until_nothing_is_left_to_write() {
    let now = Instant::now();
    let failure = |rule: &RuleRunner| rule.status(&[]).publish_failure;
    let refused_rule = || {
        let rule = refused_rule(now);
        assert_eq!(failure(&rule).as_deref(), Some("403: no"));
        rule
    };
    let mut rule = refused_rule();
    rule.condition_answered(now, KIND, None);
    assert_eq!(failure(&rule), None);

    let mut rule = refused_rule();
    let current = with_condition(Some(&open()));
    assert_eq!(next(&mut rule, now, Some(&current)), Next::Wait(None));
    assert_eq!(failure(&rule), None, "the Node already has it");

    let mut rule = refused_rule();
    assert_eq!(next(&mut rule, now, None), Next::Wait(None));
    assert_eq!(failure(&rule), None, "there is no Node");
}

#[tokio::test]
async fn another_condition_has_not_failed_and_waits_for_nothing() {
    let now = Instant::now();
    let mut rule = refused_rule(now);
    let other = "readiness.k8s.io/StorageReady";
    publish(&mut rule, now, other);
    assert_eq!(rule.status(&[]).publish_failure, None);
    let next = next(&mut rule, now, Some(&with_condition(None)));
    assert!(matches!(next, Next::Send(write) if write.kind == other));
}

#[tokio::test]
async fn a_condition_from_before_the_boot_is_written_although_it_is_the_same() {
    let now = Instant::now();
    let mut rule = publishing(now);
    let current = with_condition(Some(&open()));
    let mut freshness = NodeFreshness::default();
    let mut next =
        |freshness: &NodeFreshness| rule.next_condition(now, Some(&current), freshness, None);
    assert_eq!(next(&freshness), Next::Wait(None));
    let old = (KIND.to_owned(), "old".to_owned());
    freshness.stale_conditions.extend([old]);
    assert!(matches!(next(&freshness), Next::Send(_)));
}

/// The rule of [`publishing`] with `stableFor: 30s`. The Node has its `True`, and the gate has closed since.
fn closed_after_true(now: Instant) -> (RuleRunner, NodeView) {
    let mut rule = publishing(now);
    let version = Rule {
        stable_for: 30 * SECOND,
        ..rule.state.rule().clone()
    };
    rule.reconfigure(now, version);
    let stable = now + 30 * SECOND;
    rule.step(stable, &node("1", "True"));
    let current = with_condition(Some(&open()));
    assert_eq!(next(&mut rule, stable, Some(&current)), Next::Wait(None));
    rule.step(stable, &node("2", "False"));
    (rule, current)
}

/// What is written while the gate is open again, but not for `stableFor`.
fn written_while_stabilizing(
    rule: &mut RuleRunner,
    now: Instant,
    current: &NodeView,
) -> Option<Value> {
    rule.step(now, &node("3", "True"));
    match next(rule, now, Some(current)) {
        Next::Send(write) => Some(write.patch["status"]["conditions"][0]["status"].clone()),
        Next::Wait(_) => None,
    }
}

#[tokio::test]
async fn a_true_does_not_outlive_a_gate_that_has_closed_and_opened_before_that_could_be_written() {
    let start = Instant::now();
    let closed = start + 30 * SECOND;
    let later = closed + SECOND * 120;
    // The write fails.
    let (mut rule, current) = closed_after_true(start);
    assert!(matches!(
        next(&mut rule, closed, Some(&current)),
        Next::Send(_)
    ));
    rule.condition_answered(closed, KIND, Some(&refused()));
    let written = written_while_stabilizing(&mut rule, later, &current);
    assert_eq!(written, Some("False".into()));
    // There is no time for it, because the condition of another rule is being written.
    let (mut rule, current) = closed_after_true(start);
    let written = written_while_stabilizing(&mut rule, later, &current);
    assert_eq!(written, Some("False".into()));
    // After another whole `stableFor`, it is true again.
    let stable = later + 30 * SECOND;
    rule.step(stable, &node("4", "True"));
    assert_eq!(next(&mut rule, stable, Some(&current)), Next::Wait(None));
}

#[tokio::test]
async fn a_true_outlives_gates_that_are_unknown_for_less_than_40_s_and_no_others() {
    for (seconds, expected) in [(39, None), (40, Some("False".into()))] {
        let start = Instant::now();
        let mut rule = publishing(start);
        let version = Rule {
            stable_for: 30 * SECOND,
            ..rule.state.rule().clone()
        };
        rule.reconfigure(start, version);
        let stable = start + 30 * SECOND;
        rule.step(stable, &node("1", "True"));
        let current = with_condition(Some(&open()));
        let unwatched = NodeSnapshot {
            watching: false,
            ..node("1", "True")
        };
        rule.step(stable, &unwatched);
        assert_eq!(rule.gates.state(), State::Unknown);
        let back = stable + seconds * SECOND;
        let written = written_while_stabilizing(&mut rule, back, &current);
        assert_eq!(written, expected, "{seconds}");
    }
}
