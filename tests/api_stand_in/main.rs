//! What the API stand-in claims, asked of the stand-in and of the real API server alike, so that it cannot drift.

#![expect(
    clippy::panic,
    clippy::unwrap_used,
    reason = "all of it is a test, its helpers too"
)]

mod server;

use http::Method;
use serde_json::{Value, json};
use tempfile::tempdir;
use testkit::api::{ApiServer, Options, TOKEN};
use testkit::cluster::{self, client};
use testkit::{node, taints};

use self::server::{JSON, Server, about, failure, forbidden_option, version};

const STREAMING_LIST: &str = "sendInitialEvents=true&resourceVersionMatch=NotOlderThan";

#[tokio::test]
async fn the_stand_in_answers_as_the_api_server_does() {
    let server = ApiServer::start(Options::default()).await.unwrap();
    server.accept_tokens(&[TOKEN]);
    let dir = tempdir().unwrap();
    let kubeconfig = server.kubeconfig(dir.path()).unwrap();
    conform(&Server(client(&kubeconfig).await.unwrap())).await;

    std::fs::write(dir.path().join("token"), "wrong").unwrap();
    refuses_a_wrong_token(&Server(client(&kubeconfig).await.unwrap())).await;
}

#[tokio::test]
async fn the_api_server_answers_as_the_stand_in_does() {
    let Some(cluster) = cluster::shared().await else {
        return;
    };
    conform(&Server(cluster.client().await.unwrap())).await;

    let dir = tempdir().unwrap();
    let kubeconfig = cluster.kubeconfig(dir.path(), "wrong").unwrap();
    refuses_a_wrong_token(&Server(client(&kubeconfig).await.unwrap())).await;
}

#[tokio::test]
async fn a_stand_in_without_streaming_lists_answers_as_such_an_api_server_does() {
    let options = Options {
        streaming_lists: false,
        ..Options::default()
    };
    let server = ApiServer::start(options).await.unwrap();
    let dir = tempdir().unwrap();
    let kubeconfig = server.kubeconfig(dir.path()).unwrap();
    let subject = Server(client(&kubeconfig).await.unwrap());
    refuses_streaming_lists(&subject).await;
    server.forget_history();
    does_not_watch_from_the_past(&subject).await;
}

#[tokio::test]
async fn an_api_server_without_streaming_lists_answers_as_such_a_stand_in_does() {
    let Some(mut cluster) = cluster::fresh(&["--feature-gates=WatchList=false"]).await else {
        return;
    };
    refuses_streaming_lists(&Server(cluster.client().await.unwrap())).await;
    // The new process knows nothing of what was before it.
    cluster.restart_api_server().await.unwrap();
    does_not_watch_from_the_past(&Server(cluster.client().await.unwrap())).await;
}

/// Each part has Nodes of its own.
async fn conform(server: &Server) {
    tokio::join!(
        creates_and_deletes(server),
        patches(server),
        refuses_patches(server),
        lists_and_watches(server),
        streams_lists(server),
    );
}

async fn creates_and_deletes(server: &Server) {
    let missing = failure(404, "NotFound", "nodes \"made\" not found", about("made"));
    assert_eq!(server.get("made").await, (404, missing.clone()));
    assert_eq!(server.patch("made", "[]").await, (404, missing.clone()));

    let made = server.create("made", &["a:NoSchedule"]).await;
    assert_eq!(server.get("made").await, (200, made.clone()));
    let (code, again) = server
        .ask(
            Method::POST,
            "/api/v1/nodes",
            JSON,
            &node("made", &[]).to_string(),
        )
        .await;
    let message = "nodes \"made\" already exists";
    assert_eq!(code, 409);
    assert_eq!(again, failure(409, "AlreadyExists", message, about("made")));

    let (code, deleted) = server.delete("made").await;
    assert_eq!(code, 200);
    assert_eq!(deleted["status"], "Success");
    assert_eq!(deleted["details"]["uid"], made["metadata"]["uid"]);
    assert_eq!(server.delete("made").await, (404, missing));

    let remade = server.create("made", &[]).await;
    assert_ne!(remade["metadata"]["uid"], made["metadata"]["uid"]);
}

async fn patches(server: &Server) {
    let before = server
        .create("patched", &["a:NoSchedule", "b=x:NoExecute"])
        .await;
    let guarded = json!([
        {"op": "test", "path": "/metadata/uid", "value": before["metadata"]["uid"]},
        {"op": "test", "path": "/spec/taints/1/key", "value": "b"},
        {"op": "test", "path": "/spec/taints/1/effect", "value": "NoExecute"},
        {"op": "test", "path": "/spec/taints/1/value", "value": "x"},
        {"op": "remove", "path": "/spec/taints/1"},
    ]);
    let (code, after) = server.patch("patched", &guarded.to_string()).await;
    assert_eq!(
        (code, taints(&after)),
        (200, vec!["a:NoSchedule".to_owned()])
    );
    assert!(version(&after) > version(&before));

    // A member that is not there equals null. A patch that changes nothing is no write.
    let absent = r#"[{"op": "test", "path": "/spec/taints/0/value", "value": null}]"#;
    assert_eq!(server.patch("patched", absent).await, (200, after.clone()));

    // Unlike in RFC 6902, such a member can be replaced.
    let add = r#"[{"op": "replace", "path": "/spec/unschedulable", "value": true}]"#;
    let (code, after) = server.patch("patched", add).await;
    assert_eq!((code, &after["spec"]["unschedulable"]), (200, &json!(true)));
    let versioned = json!([
        {"op": "replace", "path": "/metadata/resourceVersion", "value": version(&after).to_string()},
        {"op": "remove", "path": "/spec/taints/0"},
    ]);
    let (code, last) = server.patch("patched", &versioned.to_string()).await;
    assert_eq!((code, last["spec"].get("taints")), (200, None));
}

async fn refuses_patches(server: &Server) {
    let node = server.create("refused", &["a:NoSchedule"]).await;
    let message = "the server rejected our request due to an error in our request";
    let rejected = failure(422, "Invalid", message, json!({}));
    for patch in [
        r#"[{"op": "test", "path": "/metadata/uid", "value": "another"}]"#,
        r#"[{"op": "test", "path": "/spec/taints/0/key", "value": "b"}]"#,
        r#"[{"op": "test", "path": "/spec/taints/0/value", "value": "x"}]"#,
        r#"[{"op": "test", "path": "/spec/taints/0/value", "value": ""}]"#,
        r#"[{"op": "test", "path": "/spec/taints/0/key", "value": null}]"#,
        r#"[{"op": "test", "path": "/spec/taints/1/key", "value": "a"}]"#,
        r#"[{"op": "test", "path": "/spec/taints/1/key", "value": null}]"#,
        r#"[{"op": "test", "path": "/spec/taints/1", "value": null}]"#,
        r#"[{"op": "remove", "path": "/spec/taints/1"}]"#,
        r#"[{"op": "remove", "path": "/spec/nothing"}]"#,
        r#"[{"op": "replace", "path": "/spec/taints/1", "value": null}]"#,
        r#"[{"op": "add", "path": "/nothing/below", "value": 1}]"#,
        r#"[{"op": "unheard", "path": "/spec"}]"#,
        r#"[{"op": "remove"}]"#,
        // One failure undoes it all.
        r#"[{"op": "remove", "path": "/spec/taints/0"}, {"op": "remove", "path": "/spec/taints/7"}]"#,
    ] {
        let answer = server.patch("refused", patch).await;
        assert_eq!(answer, (422, rejected.clone()), "{patch}");
    }

    let stale = r#"[{"op": "replace", "path": "/metadata/resourceVersion", "value": "1"}]"#;
    let message = "Operation cannot be fulfilled on nodes \"refused\": the object has been modified; \
                   please apply your changes to the latest version and try again";
    let conflict = failure(409, "Conflict", message, about("refused"));
    assert_eq!(server.patch("refused", stale).await, (409, conflict));

    let uid = r#"[{"op": "replace", "path": "/metadata/uid", "value": "another"}]"#;
    let cause = "Invalid value: \"another\": field is immutable";
    let details = json!({"name": "refused", "kind": "Node", "causes": [
        {"reason": "FieldValueInvalid", "message": cause, "field": "metadata.uid"},
    ]});
    let message = format!("Node \"refused\" is invalid: metadata.uid: {cause}");
    let immutable = failure(422, "Invalid", &message, details);
    assert_eq!(server.patch("refused", uid).await, (422, immutable));

    let no_json = failure(400, "BadRequest", "invalid JSON patch", Value::Null);
    assert_eq!(server.patch("refused", "[").await, (400, no_json));
    for no_list in [r#"{"op": "remove"}"#, "[1]"] {
        let (code, body) = server.patch("refused", no_list).await;
        assert_eq!((code, &body["reason"]), (400, &json!("BadRequest")));
        assert_eq!(body.get("details"), None);
    }
    let uri = "/api/v1/nodes/refused";
    let (code, body) = server.ask(Method::PATCH, uri, "text/plain", "[]").await;
    let message = "415: Unsupported Media Type";
    assert_eq!(code, 415);
    assert_eq!(
        body,
        failure(415, "UnsupportedMediaType", message, json!({}))
    );

    assert_eq!(server.get("refused").await, (200, node));
}

async fn lists_and_watches(server: &Server) {
    let one = server.create("watched", &["a:NoSchedule"]).await;
    let (code, list) = server
        .read("/api/v1/nodes?fieldSelector=metadata.name%3Dwatched")
        .await;
    assert_eq!((code, &list["kind"]), (200, &json!("NodeList")));
    assert_eq!(list["items"][0]["metadata"], one["metadata"]);
    assert_eq!(list["items"].as_array().unwrap().len(), 1);
    assert!(version(&list) >= version(&one));

    server.create("unwatched", &[]).await;
    let remove = r#"[{"op": "remove", "path": "/spec/taints/0"}]"#;
    let (_, two) = server.patch("watched", remove).await;
    server.delete("watched").await;
    let from = format!("resourceVersion={}", version(&list));
    let events = server.watch("watched", &from).await;
    let kinds: Vec<&Value> = events.iter().map(|event| &event["type"]).collect();
    assert_eq!(kinds, ["MODIFIED", "DELETED"]);
    assert_eq!(events[0]["object"], two);
    let mut deleted = events[1]["object"].clone();
    assert!(version(&deleted) > version(&two));
    deleted["metadata"]["resourceVersion"] = two["metadata"]["resourceVersion"].clone();
    assert_eq!(deleted, two);

    // From now on, and from the current state.
    let node = server.create("watched", &[]).await;
    for from in ["", "resourceVersion=0"] {
        begins_with_what_is_there(&server.watch("watched", from).await, &node);
    }
}

async fn streams_lists(server: &Server) {
    let node = server.create("streamed", &["a:NoSchedule"]).await;
    let added = json!({"type": "ADDED", "object": node});
    let bookmarks = format!("{STREAMING_LIST}&allowWatchBookmarks=true");
    let events = server.watch("streamed", &bookmarks).await;
    assert_eq!(events[0], added);
    is_end_of_list(&events[1]);
    assert!(version(&events[1]["object"]) >= version(&node));
    assert_eq!(events.len(), 2);

    let events = server.watch("nowhere", &bookmarks).await;
    is_end_of_list(&events[0]);
    assert_eq!(events.len(), 1);
    assert_eq!(server.watch("streamed", STREAMING_LIST).await, [added]);

    let message = "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan";
    let refusal = forbidden_option("resourceVersionMatch", message);
    let answer = server.read("/api/v1/nodes?watch=true&sendInitialEvents=true");
    assert_eq!(answer.await, (422, refusal));
}

async fn refuses_streaming_lists(server: &Server) {
    let message =
        "sendInitialEvents is forbidden for watch unless the WatchList feature gate is enabled";
    let refusal = forbidden_option("sendInitialEvents", message);
    let uri = format!("/api/v1/nodes?watch=true&{STREAMING_LIST}");
    assert_eq!(server.read(&uri).await, (422, refusal));

    let node = server.create("listed", &[]).await;
    begins_with_what_is_there(&server.watch("listed", "resourceVersion=0").await, &node);
}

/// A watch from a cache may begin some writes ago, but gets to the Node as it is.
fn begins_with_what_is_there(events: &[Value], node: &Value) {
    assert_eq!(events[0]["type"], "ADDED", "{events:?}");
    assert_eq!(events[events.len() - 1]["object"], *node, "{events:?}");
}

async fn does_not_watch_from_the_past(server: &Server) {
    let events = server.watch("listed", "resourceVersion=1").await;
    let [event] = events.as_slice() else {
        panic!("{events:?}");
    };
    assert_eq!(event["type"], "ERROR");
    let status = &event["object"];
    let message = status["message"].as_str().unwrap();
    assert!(
        message.starts_with("too old resource version: 1 ("),
        "{message}"
    );
    assert_eq!(*status, failure(410, "Expired", message, Value::Null));
}

async fn refuses_a_wrong_token(server: &Server) {
    let unauthorized = failure(401, "Unauthorized", "Unauthorized", Value::Null);
    assert_eq!(server.get("made").await, (401, unauthorized));
}

fn is_end_of_list(event: &Value) {
    let annotations = json!({"k8s.io/initial-events-end": "true"});
    assert_eq!(event["type"], "BOOKMARK");
    assert_eq!(event["object"]["metadata"]["annotations"], annotations);
}
