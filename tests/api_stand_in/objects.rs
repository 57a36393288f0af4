//! Creation, reads, deletion and forbidden changes of objects of any kind.

use serde_json::json;

use crate::kind::{failure, version};
use crate::server::Server;

pub(crate) async fn creates_and_deletes(server: &Server) {
    let kind = server.kind;
    let message = format!("{} not found", kind.quoted("made"));
    let missing = failure(404, "NotFound", &message, kind.about("made"));
    assert_eq!(server.get("made").await, (404, missing.clone()));
    assert_eq!(server.patch("made", "[]").await, (404, missing.clone()));

    let made = server.create("made", kind.one()).await;
    assert_eq!(made.pointer(kind.list), Some(&kind.one()));
    assert_eq!(server.get("made").await, (200, made.clone()));
    let message = format!("{} already exists", kind.quoted("made"));
    let exists = failure(409, "AlreadyExists", &message, kind.about("made"));
    let again = server.post(&kind.object("made", &json!([]))).await;
    assert_eq!(again, (409, exists));

    let (code, mut deleted) = server.delete("made").await;
    assert_eq!(code, 200);
    if kind.returns_deleted {
        assert!(version(&deleted) > version(&made));
        deleted["metadata"]["resourceVersion"] = made["metadata"]["resourceVersion"].clone();
        assert_eq!(deleted, made);
    } else {
        assert_eq!(deleted["status"], "Success");
        let mut details = kind.about("made");
        details["uid"] = made["metadata"]["uid"].clone();
        assert_eq!(deleted["details"], details);
    }
    assert_eq!(server.delete("made").await, (404, missing));

    let remade = server.create("made", json!([])).await;
    assert_ne!(remade["metadata"]["uid"], made["metadata"]["uid"]);
    assert_eq!(remade.pointer(kind.list), kind.empty_list.as_ref());
    assert!(version(&remade) > version(&made));
}

pub(crate) async fn keeps_what_an_object_is(server: &Server) {
    let kind = server.kind;
    let object = server.create("kept", kind.one()).await;
    let stale = r#"[{"op": "replace", "path": "/metadata/resourceVersion", "value": "1"}]"#;
    let message = format!(
        "Operation cannot be fulfilled on {}: the object has been modified; \
         please apply your changes to the latest version and try again",
        kind.quoted("kept")
    );
    let conflict = failure(409, "Conflict", &message, kind.about("kept"));
    assert_eq!(server.patch("kept", stale).await, (409, conflict));

    let uid = r#"[{"op": "replace", "path": "/metadata/uid", "value": "another"}]"#;
    let immutable = kind.immutable("kept", "metadata.uid", "another");
    assert_eq!(server.patch("kept", uid).await, (422, immutable));
    assert_eq!(server.get("kept").await, (200, object));
}
