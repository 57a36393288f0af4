//! A removal uses the connection of the watch, even long after the watch started.

use http::Request;
use serde_json::Value;
use tempfile::tempdir;
use testkit::api::{ApiServer, Options, TOKEN};
use untaint::api::{Source, Verb};

#[tokio::test]
async fn a_connection_with_a_watch_on_it_is_used_again_however_long_ago_a_request_was_started() {
    let server = ApiServer::start(Options::default()).await.unwrap();
    server.create_node(testkit::node("node", &[]));
    let dir = tempdir().unwrap();
    let source = Source::Kubeconfig(server.kubeconfig(dir.path()).unwrap());
    let api = untaint::api::ApiServer::new(source).await.unwrap();
    let get = |uri: &str| Request::get(uri).body(Vec::new()).unwrap();

    let _watch = api.watch(get("/api/v1/nodes?watch=true")).await.unwrap();
    tokio::time::pause();
    tokio::time::advance(std::time::Duration::from_mins(10)).await;
    tokio::time::resume();
    let _: Value = api
        .request(Verb::Get, get("/api/v1/nodes/node"))
        .await
        .unwrap();
    let connections: Vec<_> = server
        .requests()
        .iter()
        .map(|request| request.connection)
        .collect();
    assert_eq!(connections, [0, 0]);
}

/// The kubelet renews a token early enough. So no token is refused if the agent reads it early enough.
#[tokio::test]
async fn a_token_that_is_older_than_a_minute_is_read_again_and_used_on_the_same_connection() {
    let server = ApiServer::start(Options::default()).await.unwrap();
    server.create_node(testkit::node("node", &[]));
    server.accept_tokens(&[TOKEN]);
    let dir = tempdir().unwrap();
    let source = Source::Kubeconfig(server.kubeconfig(dir.path()).unwrap());
    let api = untaint::api::ApiServer::new(source).await.unwrap();
    let get = || Request::get("/api/v1/nodes/node").body(Vec::new()).unwrap();

    let _: Value = api.request(Verb::Get, get()).await.unwrap();
    std::fs::write(dir.path().join("token"), "rotated").unwrap();
    tokio::time::pause();
    tokio::time::advance(std::time::Duration::from_mins(1)).await;
    tokio::time::resume();
    server.accept_tokens(&["rotated"]);
    let _: Value = api.request(Verb::Get, get()).await.unwrap();
    let answers: Vec<_> = server
        .requests()
        .iter()
        .map(|request| (request.status, request.connection))
        .collect();
    assert_eq!(answers, [(Some(200), 0), (Some(200), 0)]);
}
