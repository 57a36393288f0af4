//! A watch of all Nodes, which starts before the measurements.

use std::collections::HashMap;
use std::pin::pin;
use std::time::Instant;

use anyhow::{Context as _, Result, bail};
use futures_util::StreamExt as _;
use http::Request;
use kube::core::WatchEvent;
use serde_json::Value;
use testkit::cluster::Cluster;
use testkit::{DEADLINE, taints};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::TAINT;

/// When each Node was first seen without [`TAINT`].
type Untainted = HashMap<String, Instant>;

/// The watch. It ends when it is dropped.
pub(crate) struct NodeWatch {
    untainted: watch::Receiver<Untainted>,
    _task: JoinSet<Result<()>>,
}

impl NodeWatch {
    pub(crate) async fn start(cluster: &Cluster) -> Result<Self> {
        let client = cluster.client().await?;
        let (sender, untainted) = watch::channel(Untainted::new());
        let mut task = JoinSet::new();
        task.spawn(follow(client, sender));
        Ok(Self {
            untainted,
            _task: task,
        })
    }

    /// Waits until `node` was seen without the taint, and returns when.
    pub(crate) async fn untainted(&self, node: &str) -> Result<Instant> {
        let mut untainted = self.untainted.clone();
        let found = untainted.wait_for(|known| known.contains_key(node));
        match timeout(DEADLINE, found).await {
            Ok(known) => Ok(known.context("the watch ended")?[node]),
            Err(_) => bail!("{node} is still tainted"),
        }
    }
}

async fn follow(client: kube::Client, untainted: watch::Sender<Untainted>) -> Result<()> {
    let request = Request::get("/api/v1/nodes?watch=true").body(Vec::new())?;
    let mut events = pin!(client.request_events::<Value>(request).await?);
    while let Some(event) = events.next().await {
        let (WatchEvent::Added(node) | WatchEvent::Modified(node)) = event? else {
            continue;
        };
        let now = Instant::now();
        if !taints(&node).iter().any(|taint| taint == TAINT) {
            let name = node["metadata"]["name"].as_str().context("a name")?;
            untainted.send_modify(|known| {
                known.entry(name.to_owned()).or_insert(now);
            });
        }
    }
    Ok(())
}
