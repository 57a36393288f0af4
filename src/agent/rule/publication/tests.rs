use serde_json::json;

use super::super::tests::{node, on_ready};
use super::*;
use crate::config::{PublishCondition, Rule};
use crate::gate::State;

const KIND: &str = "readiness.k8s.io/NetworkReady";
const SECOND: Duration = Duration::from_secs(1);

fn told(gates: State, message: &str) -> PublishedCondition {
    PublishedCondition::new(KIND, gates, gates == State::Open, message)
}

/// The Node once it says this.
fn saying(told: &PublishedCondition) -> NodeView {
    let patch = told.patch(&silent(), false, Timestamp::UNIX_EPOCH).unwrap();
    let metadata = json!({"name": "node", "uid": "u", "resourceVersion": "2"});
    serde_json::from_value(json!({"metadata": metadata, "status": patch["status"]})).unwrap()
}

/// The Node without the condition.
fn silent() -> NodeView {
    let metadata = json!({"name": "node", "uid": "u", "resourceVersion": "1"});
    serde_json::from_value(json!({"metadata": metadata})).unwrap()
}

fn refused() -> ApiError {
    ApiError::Refused {
        code: 403,
        message: "no".into(),
        detailed: true,
        retry_after: None,
    }
}

impl Publication {
    /// Writes it, if that is due, and has it taken.
    fn write(&mut self, now: Instant, node: &NodeView, told: &PublishedCondition) -> bool {
        let is_due = self.next(now, node, told, false, None).is_some();
        if is_due {
            self.sent(now, None);
        }
        is_due
    }
}

#[test]
fn the_last_state_of_a_gate_that_flaps_is_written_as_soon_as_there_is_a_token() {
    let now = Instant::now();
    let mut publication = Publication::new();
    let (open, closed) = (told(State::Open, ""), told(State::Closed, "agent: refused"));
    let mut node = silent();
    let mut written = 0;
    for state in [&open, &closed].into_iter().cycle().take(40) {
        if publication.write(now, &node, state) {
            written += 1;
            node = saying(state);
        }
    }
    assert_eq!(written, 5);
    // The last that the Node says is open, and the gate has closed.
    let due_at = publication.due_at.unwrap();
    assert!(due_at > now && due_at <= now + 10 * SECOND);
    assert!(publication.write(due_at, &node, &closed));
}

#[test]
fn that_gates_are_unknown_is_told_only_once_it_lasts() {
    let now = Instant::now();
    let mut publication = Publication::new();
    let (open, unknown) = (
        told(State::Open, ""),
        told(State::Unknown, "driver: no API"),
    );
    assert!(publication.write(now, &silent(), &open));
    let node = saying(&open);
    assert!(!publication.write(now, &node, &unknown));
    assert_eq!(publication.due_at, Some(now + UNKNOWN_GRACE));
    let back = now + 39 * SECOND;
    assert!(!publication.write(back, &node, &open), "it says so");
    assert!(!publication.write(back, &node, &unknown));
    assert!(publication.write(back + UNKNOWN_GRACE, &node, &unknown));
}

#[test]
fn new_words_alone_are_written_once_a_minute_and_hold_up_no_other_state() {
    let now = Instant::now();
    let mut publication = Publication::new();
    let words = |number| told(State::Closed, &format!("agent: {number}"));
    assert!(publication.write(now, &silent(), &words(0)));
    let node = saying(&words(0));
    assert!(!publication.write(now + SECOND, &node, &words(1)));
    assert_eq!(publication.due_at, Some(now + NEW_WORDS));
    assert!(publication.write(now + NEW_WORDS, &node, &words(2)));
    let node = saying(&words(2));
    assert!(publication.write(now + NEW_WORDS, &node, &told(State::Open, "")));
}

#[test]
fn a_write_that_fails_is_tried_again_ever_more_rarely_and_not_before_the_server_wants_it() {
    let now = Instant::now();
    let mut publication = Publication::new();
    let open = told(State::Open, "");
    publication.sent(now, Some(&refused()));
    assert!(
        publication
            .next(now, &silent(), &open, false, None)
            .is_none()
    );
    let first = publication.due_at.unwrap();
    assert!(first <= now + SECOND);
    publication.sent(now, Some(&refused()));
    assert!(
        publication
            .next(now, &silent(), &open, false, None)
            .is_none()
    );
    assert!(publication.due_at.unwrap() >= now + SECOND);
    let asked = now + 30 * SECOND;
    let waits = publication.next(now, &silent(), &open, false, Some(asked));
    assert_eq!((waits, publication.due_at), (None, Some(asked)));
}

/// A rule that publishes, and whose write the server has just refused.
fn refused_rule(now: Instant) -> RuleRunner {
    let mut rule = on_ready();
    let version = Rule {
        publish_condition: Some(PublishCondition { kind: KIND.into() }),
        ..rule.rule().clone()
    };
    rule.reconfigure(now, version);
    rule.step(now, &node("1", "True"));
    assert!(
        rule.next_condition(now, Some(&silent()), &NodeFreshness::default(), None)
            .is_some()
    );
    rule.condition_written(now, KIND, Some(&refused()));
    assert!(
        rule.next_condition(now, Some(&silent()), &NodeFreshness::default(), None)
            .is_none()
    );
    assert!(rule.condition_at().is_some_and(|at| at > now));
    rule
}

/// A time that is past and stays so would have the loop come round without end.
#[tokio::test]
async fn without_a_node_no_write_is_due_at_any_time() {
    let now = Instant::now();
    let mut rule = refused_rule(now);
    for after in [0, 1, 100] {
        let now = now + after * SECOND;
        assert_eq!(
            rule.next_condition(now, None, &NodeFreshness::default(), None),
            None
        );
        assert_eq!(rule.condition_at(), None);
    }
}

#[tokio::test]
async fn why_it_cannot_be_written_is_in_the_status_until_it_is_written_or_need_not_be() {
    let now = Instant::now();
    let failure = |rule: &RuleRunner| rule.status().publish_failure;
    let refused_rule = || {
        let rule = refused_rule(now);
        assert_eq!(failure(&rule).as_deref(), Some("403: no"));
        rule
    };
    let mut rule = refused_rule();
    rule.condition_written(now, KIND, None);
    assert_eq!(failure(&rule), None);

    let mut rule = refused_rule();
    let said = saying(&told(State::Open, ""));
    assert_eq!(
        rule.next_condition(now, Some(&said), &NodeFreshness::default(), None),
        None
    );
    assert_eq!(failure(&rule), None, "the Node says it already");

    let mut rule = refused_rule();
    assert_eq!(
        rule.next_condition(now, None, &NodeFreshness::default(), None),
        None
    );
    assert_eq!(failure(&rule), None, "there is no Node");
}

#[tokio::test]
async fn another_condition_has_not_failed_and_waits_for_nothing() {
    let now = Instant::now();
    let mut rule = refused_rule(now);
    let kind = "readiness.k8s.io/StorageReady";
    let version = Rule {
        publish_condition: Some(PublishCondition { kind: kind.into() }),
        ..rule.rule().clone()
    };
    rule.reconfigure(now, version);
    assert_eq!(rule.status().publish_failure, None);
    let next = rule.next_condition(now, Some(&silent()), &NodeFreshness::default(), None);
    assert_eq!(next.map(|(kind, _)| kind).as_deref(), Some(kind));
}

#[tokio::test]
async fn a_condition_from_before_the_boot_is_due_although_the_node_says_the_same() {
    let mut rule = on_ready();
    let kind = KIND.to_owned();
    let publish_condition = Some(PublishCondition { kind });
    let published = Rule {
        publish_condition,
        ..rule.rule().clone()
    };
    let now = Instant::now();
    rule.reconfigure(now, published);
    rule.step(now, &node("1", "True"));
    let said = saying(&told(State::Open, ""));
    let mut freshness = NodeFreshness::default();
    let mut next =
        |freshness: &NodeFreshness| rule.next_condition(now, Some(&said), freshness, None);
    assert_eq!(next(&freshness), None);
    let leftover = (KIND.to_owned(), "from 1970".to_owned());
    freshness.stale_conditions.extend([leftover]);
    assert!(next(&freshness).is_some());
}
