use super::*;
use crate::api::testing::unreachable;
use crate::rule::RuleEvent;

fn notification(rule: &str, event: RuleEvent) -> Notification {
    Notification {
        rule: rule.into(),
        taint: "k:NoSchedule".into(),
        dry_run: false,
        node_uid: Some("u".into()),
        waits_for: String::new(),
        last_gate: None,
        event,
    }
}

fn fight() -> Notification {
    notification("cni", RuleEvent::Fight)
}

/// Its API server is not there.
async fn away() -> (Sender, Publisher) {
    channel(unreachable().await, "node".into())
}

/// The reasons of those in the queue.
fn queued(publisher: &mut Publisher) -> usize {
    std::iter::from_fn(|| publisher.waiting.try_recv().ok()).count()
}

#[tokio::test]
async fn events_are_queued_only_while_they_are_on_and_for_notifications_that_have_one() {
    let (sender, mut publisher) = away().await;
    let clone = sender.clone();
    sender.send(&fight());
    assert_eq!(queued(&mut publisher), 0, "they are off at first");
    sender.switch(true);
    clone.send(&fight());
    assert_eq!(queued(&mut publisher), 1);
    clone.send(&notification("cni", RuleEvent::Tainted));
    let nowhere = Notification {
        node_uid: None,
        ..fight()
    };
    clone.send(&nowhere);
    assert_eq!(queued(&mut publisher), 0);
    sender.switch(false);
    clone.send(&fight());
    assert_eq!(queued(&mut publisher), 0);
}

#[tokio::test]
async fn more_than_the_queue_holds_is_given_up_and_counted() {
    let (sender, mut publisher) = away().await;
    sender.switch(true);
    for _ in 0..QUEUE + 3 {
        sender.send(&fight());
    }
    assert_eq!(publisher.given_up.load(Ordering::Relaxed), 3);
    assert_eq!(queued(&mut publisher), QUEUE);
}

#[tokio::test(start_paused = true)]
async fn an_event_that_cannot_be_sent_is_given_up_after_a_minute_and_so_are_those_behind_it() {
    let (sender, publisher) = away().await;
    let given_up = Arc::clone(&sender.given_up);
    sender.switch(true);
    sender.send(&fight());
    sender.send(&notification("another", RuleEvent::Fight));
    drop(sender);
    let started = Instant::now();
    publisher.run().await;
    let elapsed = started.elapsed();
    assert!((60..120).contains(&elapsed.as_secs()), "{elapsed:?}");
    // No line reports them: there is one line a minute, and it came first.
    assert_eq!(given_up.load(Ordering::Relaxed), 2);
}

#[tokio::test(start_paused = true)]
async fn one_rule_and_reason_cannot_use_up_what_another_has() {
    let (sender, mut publisher) = away().await;
    sender.switch(true);
    let mut takes = |rule: &str, event: RuleEvent| {
        sender.send(&notification(rule, event));
        let waiting = publisher.waiting.try_recv().unwrap();
        publisher.is_allowed(&waiting)
    };
    let fights = (0..20).filter(|_| takes("cni", RuleEvent::Fight)).count();
    assert_eq!(fights, 5);
    assert!(takes("cni", RuleEvent::RemovedByOther { ready: false }));
    assert!(takes("another", RuleEvent::Fight));
    assert!(!takes("cni", RuleEvent::Fight));
    tokio::time::advance(Duration::from_mins(1)).await;
    assert!(takes("cni", RuleEvent::Fight));
    assert!(!takes("cni", RuleEvent::Fight));
}

#[test]
fn only_a_request_that_the_server_calls_invalid_is_not_tried_again() {
    let refused = |code| ApiError::Refused {
        code,
        message: String::new(),
        detailed: true,
        retry_after: None,
    };
    for code in [401, 403, 408, 409, 429, 500, 503, 504] {
        assert!(is_temporary(&refused(code)), "{code}");
    }
    for code in [400, 404, 413, 415, 422] {
        assert!(!is_temporary(&refused(code)), "{code}");
    }
    assert!(is_temporary(&ApiError::Transport("reset".into())));
}
