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

#[tokio::test]
async fn a_change_of_the_node_alone_has_the_objects_judged_again() {
    let (updates, mut reported_updates) = mpsc::channel(1);
    let mut reporter = Reporter::new(RunId::next(), 0, updates);
    let (sender, watched) = mpsc::channel(QUEUE);
    let (node, known) = watch::channel(NodeSnapshot::default());
    let judge = |objects: &HashMap<String, Named>, freshness: &NodeFreshness| {
        if freshness.pods_synced {
            Outcome::Open(objects.len().to_string())
        } else {
            Outcome::Unknown(objects.len().to_string())
        }
    };
    let mut failure = RepeatFilter::default();
    let script = async {
        let object = json!({"metadata": {"name": "a", "uid": "1", "resourceVersion": "1"}});
        let object = serde_json::from_value(object).unwrap();
        sender.send(WatchUpdate::Apply(object)).await.unwrap();
        node.send_modify(|node| node.watching = true);
        sender.send(WatchUpdate::InitDone).await.unwrap();
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
