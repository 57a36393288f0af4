//! How the test talks to either server, and what their failures look like.

use http::{Method, Request, header};
use http_body_util::BodyExt as _;
use kube::Client;
use kube::client::Body;
use serde_json::{Value, json};
use testkit::node;

pub(crate) const JSON: &str = "application/json";
const JSON_PATCH: &str = "application/json-patch+json";

/// Either server.
pub(crate) struct Server(pub(crate) Client);

impl Server {
    async fn text(&self, method: Method, uri: &str, kind: &str, body: &str) -> (u16, String) {
        let request = Request::builder()
            .method(method)
            .uri(uri)
            .header(header::CONTENT_TYPE, kind)
            .body(Body::from(body.as_bytes().to_vec()))
            .unwrap();
        let (parts, body) = self.0.send(request).await.unwrap().into_parts();
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
        (code, serde_json::from_str(&text).unwrap())
    }

    pub(crate) async fn read(&self, uri: &str) -> (u16, Value) {
        self.ask(Method::GET, uri, JSON, "").await
    }

    pub(crate) async fn get(&self, name: &str) -> (u16, Value) {
        self.read(&format!("/api/v1/nodes/{name}")).await
    }

    pub(crate) async fn delete(&self, name: &str) -> (u16, Value) {
        let uri = format!("/api/v1/nodes/{name}");
        self.ask(Method::DELETE, &uri, JSON, "").await
    }

    pub(crate) async fn patch(&self, name: &str, patch: &str) -> (u16, Value) {
        let uri = format!("/api/v1/nodes/{name}");
        self.ask(Method::PATCH, &uri, JSON_PATCH, patch).await
    }

    /// A Node with these taints alone: the real server adds one of its own to every new Node.
    pub(crate) async fn create(&self, name: &str, taints: &[&str]) -> Value {
        let node = node(name, taints);
        let (code, created) = self
            .ask(Method::POST, "/api/v1/nodes", JSON, &node.to_string())
            .await;
        assert_eq!(code, 201, "{created}");
        let taints =
            json!([{"op": "add", "path": "/spec/taints", "value": node["spec"]["taints"]}]);
        let (code, node) = self.patch(name, &taints.to_string()).await;
        assert_eq!(code, 200, "{node}");
        node
    }

    /// The events of one second, but for the bookmarks that the real server adds when it sees fit.
    pub(crate) async fn watch(&self, name: &str, parameters: &str) -> Vec<Value> {
        let uri = format!(
            "/api/v1/nodes?watch=true&timeoutSeconds=1&fieldSelector=metadata.name%3D{name}&{parameters}"
        );
        let (code, text) = self.text(Method::GET, &uri, JSON, "").await;
        assert_eq!(code, 200, "{text}");
        let events = text.lines().map(|line| serde_json::from_str(line).unwrap());
        events.filter(|event| !is_progress(event)).collect()
    }
}

/// `details` is `null` where there are none.
pub(crate) fn failure(code: u16, reason: &str, message: &str, details: Value) -> Value {
    let mut status = json!({
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": message,
        "reason": reason,
        "code": code,
    });
    if !details.is_null() {
        status["details"] = details;
    }
    status
}

pub(crate) fn forbidden_option(field: &str, message: &str) -> Value {
    let cause = format!("Forbidden: {message}");
    let message = format!("ListOptions.meta.k8s.io \"\" is invalid: {field}: {cause}");
    let details = json!({"group": "meta.k8s.io", "kind": "ListOptions", "causes": [
        {"reason": "FieldValueForbidden", "message": cause, "field": field},
    ]});
    failure(422, "Invalid", &message, details)
}

pub(crate) fn about(name: &str) -> Value {
    json!({"name": name, "kind": "nodes"})
}

pub(crate) fn version(object: &Value) -> u64 {
    let version = object["metadata"]["resourceVersion"].as_str();
    version.unwrap().parse().unwrap()
}

fn is_progress(event: &Value) -> bool {
    event["type"] == "BOOKMARK" && event["object"]["metadata"].get("annotations").is_none()
}
