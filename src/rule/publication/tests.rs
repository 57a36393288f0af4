use serde_json::json;

use super::*;
use crate::gate::State;

const KIND: &str = "readiness.k8s.io/NetworkReady";
const SECOND: Duration = Duration::from_secs(1);

fn condition(gates: State, message: &str) -> PublishedCondition {
    PublishedCondition::new(KIND, gates, gates == State::Open, message)
}

/// The Node with this condition.
fn saying(condition: &PublishedCondition) -> NodeView {
    let patch = condition
        .patch(&silent(), false, Timestamp::UNIX_EPOCH)
        .unwrap();
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
    fn wait(
        &mut self,
        now: Instant,
        condition: &PublishedCondition,
        not_before: Option<Instant>,
    ) -> Option<Instant> {
        let clock = Timestamp::UNIX_EPOCH;
        match self.next(now, clock, &silent(), condition, false, not_before) {
            Next::Wait(until) => until,
            Next::Send(write) => panic!("{write:?} is due"),
        }
    }

    /// Writes it if that is due: then the server accepts it. Otherwise `Err` has when it is due.
    fn write(
        &mut self,
        now: Instant,
        node: &NodeView,
        condition: &PublishedCondition,
    ) -> Result<(), Option<Instant>> {
        let clock = Timestamp::UNIX_EPOCH;
        match self.next(now, clock, node, condition, false, None) {
            Next::Wait(until) => Err(until),
            Next::Send(_) => {
                self.answered(now, None);
                Ok(())
            }
        }
    }
}

#[test]
fn the_last_state_of_a_gate_that_flaps_is_written_as_soon_as_there_is_a_token() {
    let now = Instant::now();
    let mut publication = Publication::default();
    let (open, closed) = (
        condition(State::Open, ""),
        condition(State::Closed, "agent: refused"),
    );
    let mut node = silent();
    let mut written = 0;
    for state in [&open, &closed].into_iter().cycle().take(40) {
        if publication.write(now, &node, state).is_ok() {
            written += 1;
            node = saying(state);
        }
    }
    assert_eq!(written, 5);
    // The condition of the Node is open, and the gate has closed.
    let due_at = publication.write(now, &node, &closed).unwrap_err().unwrap();
    assert!(due_at > now && due_at <= now + 10 * SECOND);
    assert_eq!(publication.write(due_at, &node, &closed), Ok(()));
}

#[test]
fn unknown_gates_are_written_only_once_that_lasts() {
    let now = Instant::now();
    let mut publication = Publication::default();
    let (open, unknown) = (
        condition(State::Open, ""),
        condition(State::Unknown, "driver: no API"),
    );
    assert_eq!(publication.write(now, &silent(), &open), Ok(()));
    let node = saying(&open);
    let until = publication.write(now, &node, &unknown);
    assert_eq!(until, Err(Some(now + UNKNOWN_GRACE)));
    let back = now + 39 * SECOND;
    let says_so = publication.write(back, &node, &open);
    assert_eq!(says_so, Err(None));
    let end = back + UNKNOWN_GRACE;
    assert_eq!(publication.write(back, &node, &unknown), Err(Some(end)));
    assert_eq!(publication.write(end, &node, &unknown), Ok(()));
}

#[test]
fn a_new_message_alone_is_written_once_a_minute_and_hold_up_no_other_state() {
    let now = Instant::now();
    let mut publication = Publication::default();
    let message = |number| condition(State::Closed, &format!("agent: {number}"));
    assert_eq!(publication.write(now, &silent(), &message(0)), Ok(()));
    let (node, due_at) = (saying(&message(0)), now + MESSAGE_PERIOD);
    let until = publication.write(now + SECOND, &node, &message(1));
    assert_eq!(until, Err(Some(due_at)));
    assert_eq!(publication.write(due_at, &node, &message(2)), Ok(()));
    let (node, open) = (saying(&message(2)), condition(State::Open, ""));
    assert_eq!(publication.write(due_at, &node, &open), Ok(()));
}

#[test]
fn a_write_that_fails_is_tried_again_less_and_less_often_and_respects_retry_after() {
    let now = Instant::now();
    let mut publication = Publication::default();
    let open = condition(State::Open, "");
    publication.answered(now, Some(&refused()));
    let first = publication.wait(now, &open, None).unwrap();
    assert!(first <= now + SECOND);
    publication.answered(now, Some(&refused()));
    assert!(publication.wait(now, &open, None).unwrap() >= now + SECOND);
    let asked = now + 30 * SECOND;
    assert_eq!(publication.wait(now, &open, Some(asked)), Some(asked));
}
