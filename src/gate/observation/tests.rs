use serde_json::json;
use tokio::time::timeout;

use super::*;
use crate::gate::report::{Evaluation, Place, Update};

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
async fn what_the_node_says_later_of_the_objects_is_heard_without_news_of_them() {
    let (updates, mut told) = mpsc::channel(1);
    let place = Place {
        evaluation: Evaluation::begin(),
        condition: 0,
    };
    let mut reporter = Reporter::new(place, updates);
    let (news, heard) = mpsc::channel(QUEUE);
    let (node, known) = watch::channel(NodeSnapshot::default());
    let judge = |objects: &HashMap<String, Named>, since_boot: &SinceBoot| {
        if since_boot.pods_synced {
            Outcome::Open(objects.len().to_string())
        } else {
            Outcome::Unknown(objects.len().to_string())
        }
    };
    let mut failure = Repetition::default();
    let script = async {
        let object = json!({"metadata": {"name": "a", "uid": "1", "resourceVersion": "1"}});
        let object = serde_json::from_value(object).unwrap();
        news.send(WatchUpdate::Apply(object)).await.unwrap();
        node.send_modify(|node| node.watching = true);
        news.send(WatchUpdate::InitDone).await.unwrap();
        assert_eq!(reported(&mut told).await, Outcome::Unknown("1".into()));
        node.send_modify(|node| node.since_boot.pods_synced = true);
        assert_eq!(reported(&mut told).await, Outcome::Open("1".into()));
        drop(news);
    };
    let listening = listen(heard, "/", known, &mut failure, &mut reporter, judge);
    tokio::join!(listening, script);
}
