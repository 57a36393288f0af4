//! JSON Patch on Nodes, which is how the agent writes.

use http::Method;
use serde_json::{Value, json};
use testkit::{node, taints};

use crate::kind::{failure, version};
use crate::server::{JSON_PATCH, Server};

async fn create(server: &Server, name: &str, written: &[&str]) -> Value {
    let taints = node(name, written)["spec"]["taints"].take();
    server.create(name, taints).await
}

pub(crate) async fn patches(server: &Server) {
    let before = create(server, "patched", &["a:NoSchedule", "b=x:NoExecute"]).await;
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

    // A missing member equals null. A patch that changes nothing is not a write.
    let absent = r#"[{"op": "test", "path": "/spec/taints/0/value", "value": null}]"#;
    assert_eq!(server.patch("patched", absent).await, (200, after.clone()));

    // Unlike in RFC 6902, a missing member can be replaced.
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

pub(crate) async fn dry_runs(server: &Server) {
    let before = create(server, "dry", &["a:NoSchedule"]).await;
    let uri = server.kind.uri("dry") + "?dryRun=All";
    let patch = r#"[{"op": "remove", "path": "/spec/taints/0"}]"#;
    let (code, after) = server.ask(Method::PATCH, &uri, JSON_PATCH, patch).await;
    assert_eq!((code, after["spec"].get("taints")), (200, None));
    assert_eq!(version(&after), version(&before));
    assert_eq!(server.get("dry").await, (200, before));
}

pub(crate) async fn refuses_patches(server: &Server) {
    let node = create(server, "refused", &["a:NoSchedule"]).await;
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
        // If one operation fails, the patch changes nothing.
        r#"[{"op": "remove", "path": "/spec/taints/0"}, {"op": "remove", "path": "/spec/taints/7"}]"#,
    ] {
        let answer = server.patch("refused", patch).await;
        assert_eq!(answer, (422, rejected.clone()), "{patch}");
    }

    // The messages differ from version to version.
    for no_patch in ["[", r#"{"op": "remove"}"#, "[1]"] {
        let (code, body) = server.patch("refused", no_patch).await;
        assert_eq!((code, &body["reason"]), (400, &json!("BadRequest")));
        assert_eq!(body.get("details"), None);
    }
    let uri = server.kind.uri("refused");
    let (code, body) = server.ask(Method::PATCH, &uri, "text/plain", "[]").await;
    let message = "415: Unsupported Media Type";
    assert_eq!(code, 415);
    assert_eq!(
        body,
        failure(415, "UnsupportedMediaType", message, json!({}))
    );

    assert_eq!(server.get("refused").await, (200, node));
}
