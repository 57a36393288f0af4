//! What the tests of several modules need of the API server.

use std::sync::Arc;

use super::{ApiServer, Source};

/// An API server that refuses every connection.
pub(crate) async fn unreachable() -> Arc<ApiServer> {
    let kubeconfig = "
        apiVersion: v1
        kind: Config
        clusters: [{name: c, cluster: {server: 'http://127.0.0.1:1'}}]
        users: [{name: u, user: {}}]
        contexts: [{name: x, context: {cluster: c, user: u}}]
        current-context: x";
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), kubeconfig).unwrap();
    let source = Source::Kubeconfig(file.path().to_owned());
    Arc::new(ApiServer::new(source).await.unwrap())
}
