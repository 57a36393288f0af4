//! The own Node: what is known of it, and the requests that read and write it.

pub mod patch;
pub mod self_check;
pub mod view;
pub mod writes;

use std::time::Instant;

use kube::core::params::{GetParams, Patch, PatchParams};
use kube::core::request;

use crate::api::watch::Collection;
use crate::api::{ApiError, ApiServer, Verb};
use patch::Change;
use serde_json::Value;
use view::NodeView;

/// The answer to a request for a Node.
pub type Answer = Result<NodeView, ApiError>;

/// What to do about one kind of request.
#[derive(Debug, Clone, PartialEq)]
pub enum Next<R> {
    /// Nothing until something else changes or, with a time, until then.
    Wait(Option<Instant>),
    Send(R),
}

impl<R> Next<R> {
    /// The first request of the two or, without any, the earlier time.
    #[must_use]
    pub fn or_else(self, other: impl FnOnce() -> Self) -> Self {
        let Self::Wait(first) = self else {
            return self;
        };
        match other() {
            Self::Wait(second) => Self::Wait(first.into_iter().chain(second).min()),
            send @ Self::Send(_) => send,
        }
    }
}

/// `fieldManager` of every write.
pub const FIELD_MANAGER: &str = "untaint";

const NODES: &str = "/api/v1/nodes";

/// For a watch of the own Node.
pub fn collection(name: &str) -> Collection {
    Collection::named(NODES, name)
}

/// Reads the Node as etcd has it now: no `resourceVersion`, hence no cache.
pub async fn get(api: &ApiServer, name: &str) -> Answer {
    let request = request::Request::new(NODES).get(name, &GetParams::default())?;
    let node: NodeView = api.request(Verb::Get, request).await?;
    about(node, name, None)
}

/// Sends one change, and returns the Node as the server has it afterwards.
pub async fn patch(api: &ApiServer, name: &str, change: Change) -> Answer {
    let patch = Patch::Json::<()>(change.operations);
    let request = request::Request::new(NODES).patch(name, &params(), &patch)?;
    let node: NodeView = api.request(Verb::Patch, request).await?;
    about(node, name, Some(&change.uid))
}

/// Sends a change of the Node with this uid as a dry run. A refusal is an answer and counts as no failure.
pub async fn dry_run(
    api: &ApiServer,
    name: &str,
    uid: String,
    operations: json_patch::Patch,
) -> Answer {
    let params = PatchParams {
        dry_run: true,
        ..params()
    };
    let patch = Patch::Json::<()>(operations);
    let request = request::Request::new(NODES).patch(name, &params, &patch)?;
    let node: NodeView = api.request_unrecorded(Verb::DryRun, request).await?;
    about(node, name, Some(&uid))
}

/// Sends a strategic merge patch of the status of the Node with this uid, and returns the Node as the server has it
/// afterwards.
pub async fn patch_status(api: &ApiServer, name: &str, uid: String, patch: Value) -> Answer {
    let patch = Patch::Strategic(patch);
    let request =
        request::Request::new(NODES).patch_subresource("status", name, &params(), &patch)?;
    let node: NodeView = api.request_best_effort(Verb::Patch, request).await?;
    about(node, name, Some(&uid))
}

fn params() -> PatchParams {
    PatchParams {
        field_manager: Some(FIELD_MANAGER.into()),
        ..PatchParams::default()
    }
}

/// An answer about another Node is an error.
fn about(node: NodeView, name: &str, uid: Option<&str>) -> Answer {
    let metadata = &node.metadata;
    if metadata.name == name && uid.is_none_or(|uid| metadata.uid == uid) {
        Ok(node)
    } else {
        Err(ApiError::Malformed("it is about another Node".into()))
    }
}
