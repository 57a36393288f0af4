use std::io::ErrorKind;
use std::pin::pin;

use futures_util::{Stream, StreamExt as _};
use kube::Client;
use kube::core::WatchEvent;
use serde_json::{Value, json};
use tempfile::tempdir;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use super::*;
use crate::cluster::client;
use crate::{node, taints};

async fn start() -> (ApiServer, Client) {
    let server = ApiServer::start(Options::default()).await.unwrap();
    let dir = tempdir().unwrap();
    let kubeconfig = server.kubeconfig(dir.path()).unwrap();
    let client = client(&kubeconfig).await.unwrap();
    (server, client)
}

async fn get(client: &Client, uri: &str) -> kube::Result<Value> {
    client.request(get_request(uri)).await
}

fn get_request(uri: &str) -> http::Request<Vec<u8>> {
    http::Request::get(uri).body(Vec::new()).unwrap()
}

/// The version of the object of each event, until the end.
async fn watch(client: &Client) -> impl Stream<Item = String> + use<> {
    let request = get_request("/api/v1/nodes?watch=true&allowWatchBookmarks=true");
    let events = client.request_events::<Value>(request).await.unwrap();
    events.map(|event| match event.unwrap() {
        WatchEvent::Added(node) | WatchEvent::Modified(node) | WatchEvent::Deleted(node) => {
            node["metadata"]["resourceVersion"].as_str().unwrap().into()
        }
        WatchEvent::Bookmark(bookmark) => bookmark.metadata.resource_version,
        WatchEvent::Error(status) => panic!("{status:?}"),
    })
}

#[tokio::test]
async fn every_revision_of_a_node_is_kept_whoever_made_it() {
    let (server, client) = start().await;
    server.create_node(node("n", &["a:NoSchedule"]));
    server.create_node(node("other", &[]));
    server.update_node("n", |node| node["spec"]["taints"] = json!([]));
    let patch = json!([{"op": "add", "path": "/spec/taints", "value": [{"key": "b", "effect": "NoExecute"}]}]);
    let request = http::Request::patch("/api/v1/nodes/n")
        .header("content-type", "application/json-patch+json")
        .body(patch.to_string().into_bytes())
        .unwrap();
    client.request::<Value>(request).await.unwrap();
    server.delete_node("n");

    let revisions = server.revisions("n");
    let seen: Vec<_> = revisions
        .iter()
        .map(|revision| taints(&revision.object))
        .collect();
    assert_eq!(seen, [vec!["a:NoSchedule"], vec![], vec!["b:NoExecute"]]);
    assert!(revisions.is_sorted_by_key(|revision| revision.at));
}

#[tokio::test]
async fn a_watch_gets_changes_and_bookmarks_as_they_happen_until_it_is_ended() {
    let (server, client) = start().await;
    server.create_node(node("n", &["a:NoSchedule"]));
    let mut events = pin!(watch(&client).await);
    assert_eq!(events.next().await.unwrap(), "2");
    server.update_node("n", |node| node["spec"]["taints"] = json!([]));
    assert_eq!(events.next().await.unwrap(), "3");
    server.send_bookmark();
    assert_eq!(events.next().await.unwrap(), "4");
    server.delete_node("n");
    assert_eq!(events.next().await.unwrap(), "5");
    server.end_watches();
    assert_eq!(events.next().await, None);
    pin!(watch(&client).await);
}

#[tokio::test]
async fn a_watch_that_expires_ends_with_an_error_event() {
    let (server, client) = start().await;
    let request = get_request("/api/v1/nodes?watch=true");
    let mut events = pin!(client.request_events::<Value>(request).await.unwrap());
    server.expire_watches();
    let event = events.next().await.unwrap().unwrap();
    assert!(matches!(event, WatchEvent::Error(status) if status.code == 410));
    assert!(events.next().await.is_none());
}

#[tokio::test]
async fn objects_of_another_kind_are_apart_but_for_their_versions() {
    let (server, client) = start().await;
    server.create_node(node("n", &[]));
    let csi_node = server.create(CSI_NODES, json!({"metadata": {"name": "n"}}));
    assert_eq!(csi_node["metadata"]["resourceVersion"], "3");
    let mut nodes = pin!(watch(&client).await);
    assert_eq!(nodes.next().await.unwrap(), "2");

    server.update(CSI_NODES, "n", |csi_node| csi_node["spec"] = json!({}));
    server.update_node("n", |node| node["spec"]["taints"] = json!([{"key": "a"}]));
    assert_eq!(nodes.next().await.unwrap(), "5");
    assert_eq!(server.revisions("n").len(), 2);
    server.delete_node("n");
    let path = "/apis/storage.k8s.io/v1/csinodes";
    let csi_node = get(&client, &format!("{path}/n")).await.unwrap();
    assert_eq!(csi_node["spec"], json!({}));

    let request = get_request(&format!("{path}?watch=true&allowWatchBookmarks=true"));
    let mut csi_nodes = pin!(client.request_events::<Value>(request).await.unwrap());
    let event = csi_nodes.next().await.unwrap().unwrap();
    assert!(matches!(event, WatchEvent::Added(found) if found == csi_node));
    server.send_bookmark();
    let event = csi_nodes.next().await.unwrap().unwrap();
    assert!(matches!(event, WatchEvent::Bookmark(bookmark) if bookmark.types.kind == "CSINode"));
}

#[tokio::test]
async fn a_paused_watch_gets_its_events_after_the_pause() {
    let (server, client) = start().await;
    let mut events = pin!(watch(&client).await);
    server.pause_watches(true);
    server.create_node(node("n", &[]));
    get(&client, "/api/v1/nodes/n").await.unwrap();
    let silence = timeout(std::time::Duration::from_millis(50), events.next()).await;
    assert!(silence.is_err());
    server.pause_watches(false);
    assert_eq!(events.next().await.unwrap(), "2");
}

#[tokio::test]
async fn scripted_answers_are_given_so_often_and_only_to_their_verb() {
    let (server, client) = start().await;
    server.create_node(node("n", &[]));
    server.respond_next(Verb::Get, 2, Answer::conflict("n"));
    server.respond_next(
        Verb::Get,
        1,
        Answer::failure(500, "InternalError", "broken"),
    );
    server.respond_next(Verb::List, usize::MAX, Answer::Hang);
    for code in [409, 409, 500] {
        let error = get(&client, "/api/v1/nodes/n").await.unwrap_err();
        assert!(matches!(error, kube::Error::Api(status) if status.code == code));
    }
    get(&client, "/api/v1/nodes/n").await.unwrap();
    let (_, requests) = tokio::join!(
        timeout(
            std::time::Duration::from_millis(50),
            get(&client, "/api/v1/nodes")
        ),
        server.wait_for_requests(|all| all.len() == 5),
    );
    let codes: Vec<_> = requests.unwrap().iter().map(|one| one.status).collect();
    assert_eq!(codes, [Some(409), Some(409), Some(500), Some(200), None]);
    server.respond_as_usual();
    get(&client, "/api/v1/nodes").await.unwrap();
}

#[tokio::test]
async fn a_request_may_be_carried_out_though_its_answer_is_lost() {
    let (server, client) = start().await;
    for (answer, left) in [
        (Answer::Reset, vec!["a:NoSchedule"]),
        (Answer::ApplyAndReset, vec![]),
    ] {
        server.create_node(node("n", &["a:NoSchedule"]));
        server.respond_next(Verb::Patch, 1, answer);
        let request = http::Request::patch("/api/v1/nodes/n")
            .header("content-type", "application/json-patch+json")
            .body(br#"[{"op": "remove", "path": "/spec/taints/0"}]"#.to_vec());
        let error = client.request_text(request.unwrap()).await.unwrap_err();
        assert!(!matches!(error, kube::Error::Api(_)), "{error}");
        assert_eq!(taints(&server.node("n").unwrap()), left);
        server.delete_node("n");
    }
}

/// Uses no TLS, and a client that does not repeat requests.
async fn plain(server: &ApiServer, header: &str) -> TcpStream {
    let mut stream = TcpStream::connect(server.address()).await.unwrap();
    let request = format!("GET /api/v1/nodes/n?a=b HTTP/1.1\r\nhost: x\r\n{header}\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    stream
}

async fn start_plain() -> ApiServer {
    let options = Options {
        tls: false,
        ..Options::default()
    };
    ApiServer::start(options).await.unwrap()
}

#[tokio::test]
async fn a_throttled_request_is_told_when_to_come_back() {
    let server = start_plain().await;
    server.respond_next(Verb::Get, 1, Answer::too_many_requests(7));
    let mut answer = String::new();
    let mut stream = plain(&server, "connection: close").await;
    stream.read_to_string(&mut answer).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 429 "), "{answer}");
    assert!(answer.contains("retry-after: 7\r\n"), "{answer}");
}

#[tokio::test]
async fn a_request_is_recorded_with_its_connection_which_can_be_reset() {
    let server = start_plain().await;
    server.create_node(node("n", &[]));
    for connection in 0..2 {
        let mut stream = plain(&server, "user-agent: y").await;
        stream.read_exact(&mut [0; 16]).await.unwrap();
        server.reset_connections();
        let error = timeout(DEADLINE, stream.read_to_end(&mut Vec::new())).await;
        assert_eq!(
            error.unwrap().unwrap_err().kind(),
            ErrorKind::ConnectionReset
        );

        let request = server.requests().pop().unwrap();
        assert_eq!(request.connection, connection);
        assert_eq!(request.verb, Verb::Get);
        assert_eq!(request.uri, "/api/v1/nodes/n?a=b");
        assert_eq!(request.version, http::Version::HTTP_11);
        assert_eq!(request.user_agent.as_deref(), Some("y"));
        assert_eq!(request.status, Some(200));
    }
}

#[tokio::test]
async fn a_rotated_authority_is_in_the_kubeconfig_that_is_written_next() {
    let (server, old) = start().await;
    server.rotate_certificates().unwrap();
    get(&old, "/api/v1/nodes").await.unwrap_err();
    let dir = tempdir().unwrap();
    let kubeconfig = server.kubeconfig(dir.path()).unwrap();
    let new = client(&kubeconfig).await.unwrap();
    get(&new, "/api/v1/nodes").await.unwrap();
}

#[tokio::test]
async fn a_wanted_state_of_a_node_is_waited_for() {
    let (server, _) = start().await;
    let (found, ()) = tokio::join!(
        server.wait_for_node("n", |node| taints(node).is_empty()),
        async {
            server.create_node(node("n", &["a:NoSchedule"]));
            server.update_node("n", |node| node["spec"]["taints"] = json!([]));
        }
    );
    assert_eq!(found.unwrap()["spec"], json!({}));
}
