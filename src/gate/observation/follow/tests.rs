use std::time::Duration;

use serde_json::json;
use tokio::time::timeout;

use super::*;
use crate::gate::report::{RunId, Update};

/// How long a test waits for what must happen.
const DEADLINE: Duration = Duration::from_secs(10);

#[derive(Debug, serde::Deserialize)]
struct Named {
    metadata: crate::api::object::Metadata,
}

impl Object for Named {
    fn metadata(&self) -> &crate::api::object::Metadata {
        &self.metadata
    }
}

async fn reported(updates: &mut mpsc::Receiver<Update>) -> Outcome {
    let update = timeout(DEADLINE, updates.recv()).await.unwrap();
    update.unwrap().outcome
}

/// An object, and its watch as it begins.
async fn begin(sender: &mpsc::Sender<WatchUpdate<Named>>) {
    let object = json!({"metadata": {"name": "a", "uid": "1", "resourceVersion": "1"}});
    let object = serde_json::from_value(object).unwrap();
    sender.send(WatchUpdate::Apply(object)).await.unwrap();
    sender.send(WatchUpdate::InitDone).await.unwrap();
}

#[tokio::test]
async fn a_change_of_the_node_alone_has_the_objects_judged_again() {
    let (updates, mut reported_updates) = mpsc::channel(1);
    let mut reporter = Reporter::new(RunId::next(), 0, updates);
    let (sender, watched) = mpsc::channel(QUEUE);
    let (node, known) = watch::channel(NodeSnapshot::default());
    let judge = |objects: &HashMap<String, Named>, freshness: &NodeFreshness| {
        let count = objects.len().to_string();
        if freshness.pods_synced {
            Outcome::Open(count).into()
        } else {
            Outcome::Unknown(count).into()
        }
    };
    let mut failure = RepeatFilter::default();
    let script = async {
        node.send_modify(|node| node.watching = true);
        begin(&sender).await;
        assert_eq!(
            reported(&mut reported_updates).await,
            Outcome::Unknown("1".into())
        );
        node.send_modify(|node| node.freshness.pods_synced = true);
        assert_eq!(
            reported(&mut reported_updates).await,
            Outcome::Open("1".into())
        );
        drop(sender);
    };
    let applying = apply(watched, "/", known, &mut failure, &mut reporter, judge);
    tokio::join!(applying, script);
}

#[tokio::test(start_paused = true)]
async fn a_judgement_that_is_not_valid_any_more_is_repeated_without_an_event_while_the_watch_is_up()
{
    const VALID: Duration = Duration::from_mins(1);
    let (updates, mut reported_updates) = mpsc::channel(1);
    let mut reporter = Reporter::new(RunId::next(), 0, updates);
    let (sender, watched) = mpsc::channel(QUEUE);
    let (_node, known) = watch::channel(NodeSnapshot::default());
    let mut judgements = 0;
    let judge = |_: &HashMap<String, Named>, _: &NodeFreshness| {
        judgements += 1;
        Judgement {
            outcome: Outcome::Unknown(judgements.to_string()),
            valid_for: (judgements % 2 == 1).then_some(VALID),
        }
    };
    let mut failure = RepeatFilter::default();
    let script = async {
        let start = Instant::now();
        let mut next = async || {
            let update = timeout(VALID * 10, reported_updates.recv()).await;
            let outcome = update.ok().map(|update| update.unwrap().outcome);
            let outcome = outcome.map(|outcome| outcome.message().to_owned());
            (start.elapsed().as_secs(), outcome)
        };
        let seen = |words: &str| Some(words.to_owned());
        begin(&sender).await;
        assert_eq!(next().await, (0, seen("1")));
        assert_eq!(next().await, (60, seen("2")));
        assert_eq!(next().await, (660, None), "it is valid forever");
        begin(&sender).await;
        assert_eq!(next().await, (660, seen("3")));
        assert_eq!(next().await, (660, seen("4")));
        sender.send(WatchUpdate::InitDone).await.unwrap();
        assert_eq!(next().await, (660, seen("5")));
        sender.send(WatchUpdate::Stale).await.unwrap();
        assert_eq!(
            next().await,
            (
                660,
                seen("cannot watch / now: the next watch has not started yet")
            )
        );
        assert_eq!(next().await, (1260, None), "the watch is not up");
        drop(sender);
    };
    let applying = apply(watched, "/", known, &mut failure, &mut reporter, judge);
    tokio::join!(applying, script);
}
