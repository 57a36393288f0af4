//! Reads and changes Nodes as the administrator.

use std::pin::pin;

use anyhow::{Context as _, Result, bail};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use futures_util::StreamExt as _;
use http::{Method, Request};
use kube::core::WatchEvent;
use serde_json::{Value, json};
use tokio::time::timeout;

use super::{Cluster, JSON};
use crate::{DEADLINE, nodes};

const MERGE_PATCH: &str = "application/merge-patch+json";

impl Cluster {
    /// Creates a Node with these taints (see [`node`](crate::node)). The API server adds
    /// `node.kubernetes.io/not-ready:NoSchedule` as the last taint.
    pub async fn create_node(&self, name: &str, taints: &[&str]) -> Result<Value> {
        let node = nodes::node(name, taints);
        self.request(Method::POST, "/api/v1/nodes", JSON, Some(&node))
            .await
    }

    /// Changes a Node by a JSON merge patch, which replaces lists as a whole.
    pub async fn patch_node(&self, name: &str, patch: &Value) -> Result<Value> {
        self.request(Method::PATCH, &uri(name), MERGE_PATCH, Some(patch))
            .await
    }

    /// Replaces all taints of a Node.
    pub async fn set_taints(&self, name: &str, taints: &[&str]) -> Result<Value> {
        let taints = &nodes::node(name, taints)["spec"]["taints"];
        self.patch_node(name, &json!({"spec": {"taints": taints}}))
            .await
    }

    /// Deletes a Node.
    pub async fn delete_node(&self, name: &str) -> Result<()> {
        self.request(Method::DELETE, &uri(name), JSON, None).await?;
        Ok(())
    }

    /// Changes the creation time of a Node to `time` (RFC 3339). No API allows this, so this writes to etcd.
    pub async fn backdate_node(&self, name: &str, time: &str) -> Result<()> {
        let mut node = self.node(name).await?;
        node["metadata"]["creationTimestamp"] = time.into();
        let metadata = node["metadata"].as_object_mut().context("metadata")?;
        // The stored object does not need these fields.
        metadata.remove("resourceVersion");
        metadata.remove("managedFields");
        let key = BASE64.encode(format!("/registry/minions/{name}"));
        let put = json!({"key": key, "value": BASE64.encode(node.to_string())});
        self.ask_etcd("/v3/kv/put", &put).await
    }

    pub async fn node(&self, name: &str) -> Result<Value> {
        self.request(Method::GET, &uri(name), JSON, None).await
    }

    /// Waits until `wanted` is true for a state of the Node, and returns that state; fails after [`DEADLINE`].
    pub async fn wait_for_node(
        &self,
        name: &str,
        wanted: impl FnMut(&Value) -> bool,
    ) -> Result<Value> {
        match timeout(DEADLINE, self.watch_for(name, wanted)).await {
            Ok(node) => node,
            Err(_) => bail!("{name} is still {:?}", self.node(name).await),
        }
    }

    async fn watch_for(&self, name: &str, mut wanted: impl FnMut(&Value) -> bool) -> Result<Value> {
        // Without a version, the watch starts with the current state.
        let uri = format!("/api/v1/nodes?watch=true&fieldSelector=metadata.name%3D{name}");
        let request = Request::get(uri).body(Vec::new())?;
        let client = self.client().await?;
        let mut events = pin!(client.request_events::<Value>(request).await?);
        loop {
            match events.next().await.context("the watch ended")?? {
                WatchEvent::Added(node) | WatchEvent::Modified(node) if wanted(&node) => {
                    return Ok(node);
                }
                WatchEvent::Error(status) => bail!("the watch failed: {status:?}"),
                _ => {}
            }
        }
    }
}

fn uri(name: &str) -> String {
    format!("/api/v1/nodes/{name}")
}
