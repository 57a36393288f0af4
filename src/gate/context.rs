//! What the gates of a rule have besides their configuration.

use std::sync::Arc;

use tokio::sync::{mpsc, watch};

use super::freshness::NodeFreshness;
use super::report::Update;
use crate::api::ApiServer;
use crate::node::view::NodeView;
use crate::taint::TaintMatcher;

#[derive(Clone)]
pub struct GateContext {
    /// Where evaluations report to.
    pub updates: mpsc::Sender<Update>,
    /// `None` for a command that does not use the API server: every observation is unknown.
    pub api: Option<Arc<ApiServer>>,
    /// The name of the agent's own Node. A command that does not use the API server may not know it.
    pub node_name: Option<String>,
    /// The own Node, by the agent's watch.
    pub node: watch::Receiver<NodeSnapshot>,
    /// Whether a taint waits only for the API server.
    pub urgent: watch::Receiver<bool>,
    /// The uid of the pod that may become ready only when this program has ended, if there is one.
    pub waiting_pod: Option<String>,
    /// The taints of the rule, with the one that it removes first.
    pub taints: Vec<TaintMatcher>,
}

impl GateContext {
    pub fn without_api_server(updates: mpsc::Sender<Update>, node_name: Option<String>) -> Self {
        Self {
            updates,
            api: None,
            node_name,
            node: watch::channel(NodeSnapshot::default()).1,
            urgent: watch::channel(false).1,
            waiting_pod: None,
            taints: Vec::new(),
        }
    }
}

/// What the agent knows of its own Node.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct NodeSnapshot {
    /// The newest Node.
    pub node: Option<NodeView>,
    /// Whether the watch is up, so that `node` is current.
    pub watching: bool,
    pub freshness: NodeFreshness,
}

impl NodeSnapshot {
    /// The Node as it is now, or the reason why that is unknown.
    pub(super) fn current(&self) -> Result<&NodeView, String> {
        if !self.watching {
            return Err("untaint cannot watch the Node now".into());
        }
        let node = self.node.as_ref().ok_or("the Node does not exist")?;
        match &self.freshness.no_report {
            Some(reason) => Err(reason.clone()),
            None => Ok(node),
        }
    }
}
