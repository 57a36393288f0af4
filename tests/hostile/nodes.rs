//! The account of the DaemonSet, with the token of one Node.

use http::Method;
use kube::Client;
use serde_json::{Value, json};
use untaint::manifests::Part;

use crate::changes::{self, Change, NOT_STATUS};
use crate::installation::{CONFIGURATION, Installation, Options, rich_node};
use crate::request::{APPLY, By, Request};
use crate::{events, others, owners};

/// A request that must be refused.
pub(crate) struct Row {
    pub(crate) request: Request,
    /// With the roles that the program makes.
    pub(crate) by: By,
    /// With roles that are too generous.
    pub(crate) by_then: By,
    /// In the message of the policy.
    pub(crate) message: &'static str,
}

/// One by one.
pub(crate) async fn refuse(client: &Client, rows: &[Row], is_generous: bool) {
    let mut wrong = Vec::new();
    for row in rows {
        let answer = row.request.send(client).await;
        let by = answer.refused_by();
        println!("| {} | {} | {by} |", row.request.name, answer.code);
        let expected = if is_generous { row.by_then } else { row.by };
        let is_right = match by {
            By::Nobody => false,
            By::Rbac => expected == by,
            By::Policy => expected == by && answer.says(row.message),
            By::Server => expected == by || answer.is_conflict_of(&row.request),
        };
        if !is_right {
            wrong.push(format!(
                "{}: {by}, not {expected}: {answer:?}",
                row.request.name
            ));
        }
    }
    let count = rows.len();
    println!("| {count} requests | | |");
    assert!(
        wrong.is_empty(),
        "{} of {count}:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}

/// What no agent does with Nodes: with the own one, and with another that has the same taints.
pub(crate) fn rows(own: &Value, other: &Value) -> Vec<Row> {
    let mut rows = Vec::new();
    let not_other = "the token is for the Node ";
    for change in changes::of_nodes(own) {
        rows.extend(of_change(&change, own, "", change.message));
        rows.extend(of_change(&change, other, "", not_other));
    }
    for change in changes::of_status(own) {
        rows.extend(of_change(&change, own, "/status", change.message));
        rows.extend(of_change(&change, other, "/status", not_other));
    }
    // What it may do on its own.
    rows.extend(of_change(&own_removal(other), other, "", not_other));
    rows.extend(of_change(
        &own_condition(other),
        other,
        "/status",
        not_other,
    ));
    rows.extend(of_others(own, other));
    rows.extend(owners::rows(own));
    rows
}

/// The own taint alone.
pub(crate) fn own_removal(node: &Value) -> Change {
    let mut taints = node["spec"]["taints"].as_array().unwrap().clone();
    taints.retain(|taint| taint["key"] != "example.com/not-ready");
    Change::of(
        "the own taint removed",
        ["spec", "taints"],
        json!(taints),
        "",
    )
}

/// Beside those that are there.
pub(crate) fn own_condition(node: &Value) -> Change {
    let mut conditions = node["status"]["conditions"].as_array().unwrap().clone();
    conditions.push(json!({"type": "example.com/StorageReady", "status": "True"}));
    Change::of(
        "the own condition",
        ["status", "conditions"],
        json!(conditions),
        "",
    )
}

fn of_change(change: &Change, node: &Value, subresource: &str, message: &'static str) -> Vec<Row> {
    let requests = change.requests(node, subresource).into_iter();
    let by_then = change.refused_by;
    let rows = requests.map(|request| {
        let by = if request.method == Method::PUT {
            By::Rbac
        } else {
            by_then
        };
        Row {
            request,
            by,
            by_then,
            message,
        }
    });
    rows.collect()
}

/// What is no change of a Node.
fn of_others(own: &Value, other: &Value) -> Vec<Row> {
    let name = |node: &Value| node["metadata"]["name"].as_str().unwrap().to_owned();
    let uri = |node: &Value, rest: &str| format!("/api/v1/nodes/{}{rest}", name(node));
    let mut rows = Vec::new();
    let mut row = |title: &str, method, uri: String, body, message| {
        rows.push(Row {
            request: Request::new(format!("{title}: {uri}"), method, uri, body),
            by: By::Rbac,
            by_then: By::Policy,
            message,
        });
    };
    let new = json!({"metadata": {"name": "thiefs"}});
    row(
        "create",
        Method::POST,
        "/api/v1/nodes".into(),
        new,
        "refused: CREATE of nodes",
    );
    for node in [own, other] {
        row(
            "delete",
            Method::DELETE,
            uri(node, ""),
            Value::Null,
            "refused: DELETE of nodes",
        );
        let this = format!("/api/v1/nodes?fieldSelector=metadata.name%3D{}", name(node));
        row(
            "delete collection",
            Method::DELETE,
            this,
            Value::Null,
            "refused: DELETE of nodes",
        );
        for method in [Method::GET, Method::POST, Method::PUT, Method::DELETE] {
            let uri = uri(node, "/proxy/run");
            row(
                "proxy",
                method,
                uri,
                Value::Null,
                "refused: CONNECT of nodes/proxy",
            );
        }
    }
    rows
}

#[tokio::test]
pub(crate) async fn a_token_of_one_node_is_good_for_nothing_else_and_where_roles_are_too_generous_the_policy_says_so()
 {
    let Some(shipped) = Installation::new("hostile-shipped", Options::default()).await else {
        return;
    };
    let generous = Installation::new("hostile-generous", Options::default())
        .await
        .unwrap();
    generous.be_too_generous().await;
    let own = rich_node(shipped.cluster, "own").await;
    let other = rich_node(shipped.cluster, "other").await;
    let mut rows = rows(&own, &other);
    rows.extend(events::rows(shipped.cluster, "own", "other").await);
    println!("\n| with the roles that untaint makes | code | refused by |\n|---|---|---|");
    refuse(&shipped.client_for("own").await, &rows, false).await;
    println!("\n| with roles that are too generous | code | refused by |\n|---|---|---|");
    refuse(&generous.client_for("own").await, &rows, true).await;
    println!("\n| what is not about Nodes or Events | code | refused by |\n|---|---|---|");
    refuse(
        &shipped.client_for("own").await,
        &others::rows(&shipped),
        false,
    )
    .await;
    for node in [own, other] {
        let name = node["metadata"]["name"].as_str().unwrap();
        assert_eq!(shipped.cluster.node(name).await.unwrap(), node);
    }
}

/// Without `retaint` and `publishCondition`, removals are all there is.
#[tokio::test]
pub(crate) async fn nothing_is_put_back_and_nothing_published_where_no_rule_asks_for_it() {
    let configuration = CONFIGURATION
        .replace("  publishCondition:", "  # publishCondition:")
        .replace("  retaint:", "  # retaint:");
    let options = Options {
        configuration,
        ..Options::default()
    };
    let Some(shipped) = Installation::new("silent", options).await else {
        return;
    };
    let own = rich_node(shipped.cluster, "silent").await;
    let mut rows = of_change(&own_condition(&own), &own, "/status", NOT_STATUS);
    for row in &mut rows {
        row.by = By::Rbac;
    }
    let mut taints = own["spec"]["taints"].as_array().unwrap().clone();
    taints.push(json!({"key": "example.com/link", "value": "up", "effect": "NoSchedule"}));
    let put_back = Change::of("put back", ["spec", "taints"], json!(taints), "");
    rows.extend(of_change(
        &put_back,
        &own,
        "",
        "added: example.com/link:NoSchedule;",
    ));
    let client = shipped.client_for("silent").await;
    refuse(&client, &rows, false).await;
    shipped.be_too_generous().await;
    refuse(&client, &rows, true).await;
    let mut work = own_removal(&own).requests(&own, "");
    // Whoever applies something owns it then: see `owners`.
    work.retain(|request| request.content_type != APPLY);
    for request in work {
        let request = request.dry();
        let answer = request.send(&client).await;
        assert_eq!(answer.code, 200, "{}: {answer:?}", request.name);
    }
}

/// Without a rule that writes, the rules are an empty map.
#[tokio::test]
pub(crate) async fn nothing_is_let_through_where_every_rule_only_watches() {
    let configuration = CONFIGURATION.replace("\n  gates:", "\n  dryRun: true\n  gates:");
    let configuration = configuration.replace("  gates: []\n  dryRun: true\n", "  gates: []\n");
    let options = Options {
        configuration,
        ..Options::default()
    };
    let Some(watching) = Installation::account("watching", options).await else {
        return;
    };
    assert_eq!(
        watching
            .manifests
            .configuration
            .rules
            .iter()
            .filter(|rule| !rule.dry_run)
            .count(),
        0
    );
    watching.be_too_generous().await;
    watching.apply(&[Part::Rbac, Part::Policy]).await;
    watching.in_force().await;
    let own = rich_node(watching.cluster, "watching").await;
    let mut rows = of_change(
        &own_removal(&own),
        &own,
        "",
        "all other taints must stay unchanged",
    );
    rows.extend(of_change(&own_condition(&own), &own, "/status", NOT_STATUS));
    refuse(&watching.client_for("watching").await, &rows, true).await;
}
