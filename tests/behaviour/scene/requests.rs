//! The agent's requests to a real API server.

use testkit::cluster::{AuditEntry, streaming_lists};

use super::OnCluster;

/// Whether the agent begins to watch an object with this list or watch, or fails to.
///
/// A server with streaming lists gets one request. Another server gets three the first time: a watch that it refuses
/// with 422, a list, and a watch. Later, it gets the last two. Of these, the list is the beginning.
pub(crate) fn begins_a_watch(uri: &str, code: Option<u64>) -> bool {
    let is_streaming_list = uri.contains("sendInitialEvents");
    !uri.contains("watch=true") || is_streaming_list && code != Some(422)
}

/// The verb with which the agent begins to watch an object, once it knows what the server supports.
pub(crate) async fn beginning() -> &'static str {
    if streaming_lists().await {
        "watch"
    } else {
        "list"
    }
}

impl OnCluster {
    /// The agent's requests, as they are for a server with streaming lists: without them, the list stands for all three
    /// requests of a watch, as a watch.
    pub(crate) async fn requests(&self) -> Vec<AuditEntry> {
        let mut requests = self.all_requests().await;
        if !streaming_lists().await {
            requests.retain(|it| it.verb != "watch" || begins_a_watch(&it.uri, it.code));
            let lists = requests.iter_mut().filter(|it| it.verb == "list");
            lists.for_each(|it| "watch".clone_into(&mut it.verb));
        }
        requests
    }

    /// The same, exactly as they were.
    pub(crate) async fn all_requests(&self) -> Vec<AuditEntry> {
        let mine = |entry: &AuditEntry| entry.node.as_deref() == Some(self.name);
        self.cluster.requests(mine).await.unwrap()
    }
}
