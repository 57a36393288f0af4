//! A client of either server.

use http::{Method, Request, header};
use http_body_util::BodyExt as _;
use kube::Client;
use kube::client::Body;
use serde_json::{Value, json};

use crate::kind::Kind;

pub(crate) const JSON: &str = "application/json";
pub(crate) const JSON_PATCH: &str = "application/json-patch+json";

/// One of the two servers, for objects of one kind.
pub(crate) struct Server {
    client: Client,
    pub(crate) kind: &'static Kind,
}

impl Server {
    pub(crate) fn new(client: &Client, kind: &'static Kind) -> Self {
        let client = client.clone();
        Self { client, kind }
    }

    async fn text(&self, method: Method, uri: &str, kind: &str, body: &str) -> (u16, String) {
        let request = Request::builder()
            .method(method)
            .uri(uri)
            .header(header::CONTENT_TYPE, kind)
            .body(Body::from(body.as_bytes().to_vec()))
            .unwrap();
        let (parts, body) = self.client.send(request).await.unwrap().into_parts();
        let body = body.collect().await.unwrap().to_bytes();
        (
            parts.status.as_u16(),
            String::from_utf8(body.to_vec()).unwrap(),
        )
    }

    pub(crate) async fn ask(
        &self,
        method: Method,
        uri: &str,
        kind: &str,
        body: &str,
    ) -> (u16, Value) {
        let (code, text) = self.text(method, uri, kind, body).await;
        let mut answer: Value = serde_json::from_str(&text).unwrap();
        // Kubernetes 1.30 checks the metadata of an object twice, and gives the cause of a refusal twice.
        if let Some(causes) = answer.pointer_mut("/details/causes") {
            causes.as_array_mut().unwrap().dedup();
        }
        (code, answer)
    }

    pub(crate) async fn read(&self, uri: &str) -> (u16, Value) {
        self.ask(Method::GET, uri, JSON, "").await
    }

    pub(crate) async fn get(&self, name: &str) -> (u16, Value) {
        self.read(&self.kind.uri(name)).await
    }

    pub(crate) async fn post(&self, object: &Value) -> (u16, Value) {
        let body = object.to_string();
        self.ask(Method::POST, self.kind.path, JSON, &body).await
    }

    pub(crate) async fn delete(&self, name: &str) -> (u16, Value) {
        self.ask(Method::DELETE, &self.kind.uri(name), JSON, "")
            .await
    }

    pub(crate) async fn patch(&self, name: &str, patch: &str) -> (u16, Value) {
        self.ask(Method::PATCH, &self.kind.uri(name), JSON_PATCH, patch)
            .await
    }

    /// Creates an object with exactly this list, although the real server adds a taint to every new Node.
    pub(crate) async fn create(&self, name: &str, list: Value) -> Value {
        let (code, created) = self.post(&self.kind.object(name, &list)).await;
        assert_eq!(code, 201, "{created}");
        let list = json!([{"op": "add", "path": self.kind.list, "value": list}]);
        let (code, object) = self.patch(name, &list.to_string()).await;
        assert_eq!(code, 200, "{object}");
        object
    }

    /// The events of one second, without bookmarks, which the real server can add at any time.
    pub(crate) async fn watch(&self, name: &str, parameters: &str) -> Vec<Value> {
        let uri = format!(
            "{}?watch=true&timeoutSeconds=1&fieldSelector=metadata.name%3D{name}&{parameters}",
            self.kind.path
        );
        let (code, text) = self.text(Method::GET, &uri, JSON, "").await;
        assert_eq!(code, 200, "{text}");
        let events = text.lines().map(|line| serde_json::from_str(line).unwrap());
        events.filter(|event| !is_progress(event)).collect()
    }
}

fn is_progress(event: &Value) -> bool {
    event["type"] == "BOOKMARK" && event["object"]["metadata"].get("annotations").is_none()
}
