//! The own Node: what is known of it, how it is watched, and the only write there is.

pub mod patch;
pub mod removal;
pub mod view;
pub mod watch;

use http::Request;
use kube::core::params::{GetParams, Patch, PatchParams};
use kube::core::request;

use crate::api::{ApiError, ApiServer};
use patch::Removal;
use view::NodeView;

/// `fieldManager` of every write.
pub const FIELD_MANAGER: &str = "untaint";

const NODES: &str = "/api/v1/nodes";

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

fn valid(request: Result<Request<Vec<u8>>, request::Error>) -> Result<Request<Vec<u8>>, ApiError> {
    request.map_err(|error| ApiError::Malformed(error.to_string()))
}
