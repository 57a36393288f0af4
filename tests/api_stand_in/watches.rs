//! Lists and watches of objects of any kind.

use serde_json::{Value, json};

use crate::kind::{failure, forbidden_option, version};
use crate::server::Server;

const STREAMING_LIST: &str = "sendInitialEvents=true&resourceVersionMatch=NotOlderThan";

pub(crate) async fn lists_and_watches(server: &Server) {
    let kind = server.kind;
    let one = server.create("watched", kind.one()).await;
    let uri = format!("{}?fieldSelector=metadata.name%3Dwatched", kind.path);
    let (code, list) = server.read(&uri).await;
    assert_eq!(code, 200);
    assert_eq!(list["kind"], format!("{}List", kind.name));
    assert_eq!(list["apiVersion"], one["apiVersion"]);
    assert_eq!(list["items"][0]["metadata"], one["metadata"]);
    assert_eq!(list["items"].as_array().unwrap().len(), 1);
    assert!(version(&list) >= version(&one));

    server.create("unwatched", json!([])).await;
    let remove = json!([{"op": "remove", "path": format!("{}/0", kind.list)}]);
    let (_, two) = server.patch("watched", &remove.to_string()).await;
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

    // A watch from now on, and a watch that starts with the current state.
    let object = server.create("watched", json!([])).await;
    for from in ["", "resourceVersion=0"] {
        begins_with_what_is_there(&server.watch("watched", from).await, &object);
    }
}

pub(crate) async fn streams_lists(server: &Server) {
    let object = server.create("streamed", server.kind.one()).await;
    let added = json!({"type": "ADDED", "object": object});
    let bookmarks = format!("{STREAMING_LIST}&allowWatchBookmarks=true");
    let events = server.watch("streamed", &bookmarks).await;
    assert_eq!(events[0], added);
    is_end_of_list(server, &events[1]);
    assert!(version(&events[1]["object"]) >= version(&object));
    assert_eq!(events.len(), 2);

    let events = server.watch("nowhere", &bookmarks).await;
    is_end_of_list(server, &events[0]);
    assert_eq!(events.len(), 1);
    assert_eq!(server.watch("streamed", STREAMING_LIST).await, [added]);

    let message = "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan";
    let refusal = forbidden_option("resourceVersionMatch", message);
    let uri = format!("{}?watch=true&sendInitialEvents=true", server.kind.path);
    assert_eq!(server.read(&uri).await, (422, refusal));
}

pub(crate) async fn refuses_streaming_lists(server: &Server) {
    let message =
        "sendInitialEvents is forbidden for watch unless the WatchList feature gate is enabled";
    let refusal = forbidden_option("sendInitialEvents", message);
    let uri = format!("{}?watch=true&{STREAMING_LIST}", server.kind.path);
    assert_eq!(server.read(&uri).await, (422, refusal));

    let object = server.create("listed", json!([])).await;
    begins_with_what_is_there(&server.watch("listed", "resourceVersion=0").await, &object);
}

/// A watch from a cache can start with older versions, but reaches the current object.
fn begins_with_what_is_there(events: &[Value], object: &Value) {
    assert_eq!(events[0]["type"], "ADDED", "{events:?}");
    assert_eq!(events[events.len() - 1]["object"], *object, "{events:?}");
}

pub(crate) async fn does_not_watch_from_the_past(server: &Server) {
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

fn is_end_of_list(server: &Server, event: &Value) {
    assert_eq!(event["object"]["kind"], server.kind.name);
    let annotations = json!({"k8s.io/initial-events-end": "true"});
    assert_eq!(event["type"], "BOOKMARK");
    assert_eq!(event["object"]["metadata"]["annotations"], annotations);
}
