//! The own Node: what is known of it, how it is watched, and the only write there is.

pub mod patch;
pub mod removal;
pub mod view;

use kube::core::params::{GetParams, Patch, PatchParams};
use kube::core::request;

use crate::api::watch::Collection;
use crate::api::{ApiError, ApiServer, valid};
use patch::Removal;
use view::NodeView;

/// `fieldManager` of every write.
pub const FIELD_MANAGER: &str = "untaint";

const NODES: &str = "/api/v1/nodes";

/// The own Node, for a watch.
#[must_use]
pub fn collection(name: &str) -> Collection {
    Collection::named(NODES, name)
}

/// Reads the Node as etcd has it now: no `resourceVersion`, hence no cache.
pub async fn get(api: &ApiServer, name: &str) -> Result<NodeView, ApiError> {
    api.request(valid(
        request::Request::new(NODES).get(name, &GetParams::default()),
    )?)
    .await
}

/// Sends one removal and gives the Node as the server has it afterwards.
pub async fn patch(api: &ApiServer, name: &str, removal: &Removal) -> Result<NodeView, ApiError> {
    let params = PatchParams {
        field_manager: Some(FIELD_MANAGER.into()),
        ..PatchParams::default()
    };
    let request = request::Request::new(NODES).patch(
        name,
        &params,
        &Patch::Json::<()>(removal.operations.clone()),
    );
    api.request(valid(request)?).await
}
