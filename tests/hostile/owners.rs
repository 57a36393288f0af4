//! Whom fields of a Node belong to, as its managedFields say.

use serde_json::{Value, json};

use crate::installation::{Installation, Options};
use crate::nodes::Row;
use crate::request::{APPLY, By, MERGE, Request};
use crate::tokens::removal;

/// What is said to belong to somebody who applies goes when they apply again without it.
pub(crate) fn rows(node: &Value) -> Vec<Row> {
    let uri = format!(
        "/api/v1/nodes/{}",
        node["metadata"]["name"].as_str().unwrap()
    );
    let mut rows = Vec::new();
    for fields in [
        json!({"f:spec": {"f:taints": {}}}),
        json!({"f:metadata": {"f:labels": {"f:team": {}}}}),
    ] {
        let manager = json!({
            "manager": "applier", "operation": "Apply", "apiVersion": "v1", "time": "2026-01-01T00:00:00Z",
            "fieldsType": "FieldsV1", "fieldsV1": fields,
        });
        let patch = json!({"metadata": {"managedFields": [manager]}});
        rows.push(Row {
            request: Request::patch(format!("{fields} given: {uri}"), &uri, MERGE, patch),
            by: By::Policy,
            by_then: By::Policy,
            message: "or add to the fields of an applier in managedFields",
        });
    }
    rows
}

/// Whoever applied it loses it to the agent.
#[tokio::test]
pub(crate) async fn a_taint_that_somebody_applied_can_go() {
    let Some(shipped) = Installation::new("applied", Options::default()).await else {
        return;
    };
    let cluster = shipped.cluster;
    cluster.create_node("applied", &[]).await.unwrap();
    let admin = cluster.client().await.unwrap();
    let client = shipped.client_for("applied").await;
    for spec in [
        json!({"taints": [{"key": "example.com/not-ready", "effect": "NoExecute"}]}),
        json!({"taints": [{"key": "example.com/not-ready", "effect": "NoExecute"}], "unschedulable": true}),
    ] {
        let node = json!({
            "apiVersion": "v1", "kind": "Node", "metadata": {"name": "applied", "labels": {"a": "b"}}, "spec": spec,
        });
        let uri = "/api/v1/nodes/applied?fieldManager=applier&force=true";
        let answer = Request::patch("", uri, APPLY, node).send(&admin).await;
        assert_eq!(answer.code, 200, "{answer:?}");
        let answer = removal("applied").send(&client).await;
        assert_eq!(answer.code, 200, "{answer:?}");
    }
}
