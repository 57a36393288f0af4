//! Events.

use http::Method;
use serde_json::{Value, json};
use testkit::cluster::Cluster;

use crate::nodes::Row;
use crate::request::{By, MERGE, Request};

pub(crate) const EVENTS: &str = "/apis/events.k8s.io/v1/namespaces/default/events";

/// An Event of this name about the Node of this name, as the agent writes them.
pub(crate) fn event(name: &str, node: &str) -> Value {
    json!({
        "metadata": {"name": name, "namespace": "default"},
        "eventTime": "2026-01-01T00:00:00.000000Z",
        "reportingController": "untaint",
        "reportingInstance": node,
        "action": "RemoveTaint",
        "reason": "TaintRemoved",
        "type": "Normal",
        "regarding": {"apiVersion": "v1", "kind": "Node", "name": node},
    })
}

/// What no agent does with Events; some are there.
pub(crate) async fn rows(cluster: &Cluster, own: &str, other: &str) -> Vec<Row> {
    let [of_own, of_other, of_kubelet] =
        ["own", "other", "kubelet"].map(|of| format!("{own}.{of}"));
    let mut by_kubelet = event(&of_kubelet, own);
    by_kubelet["reportingController"] = json!("kubelet");
    for mut event in [event(&of_own, own), event(&of_other, other), by_kubelet] {
        event["apiVersion"] = json!("events.k8s.io/v1");
        event["kind"] = json!("Event");
        cluster.apply(&event.to_string()).await.unwrap();
    }
    let mut rows = created(own, other);
    let label = json!({"metadata": {"labels": {"x": "y"}}});
    let regarding = |node: &str| json!({"regarding": {"name": node}});
    // What an Event is about, the server lets nobody change.
    for (title, name, patch, by) in [
        (
            "about another Node labelled",
            &of_other,
            label.clone(),
            By::Policy,
        ),
        (
            "of another controller labelled",
            &of_kubelet,
            label,
            By::Policy,
        ),
        (
            "about another Node made the own",
            &of_other,
            regarding(own),
            By::Server,
        ),
        (
            "of the own made another's",
            &of_own,
            regarding(other),
            By::Server,
        ),
    ] {
        let uri = format!("{EVENTS}/{name}");
        let request = Request::patch(format!("Event {title}"), uri, MERGE, patch);
        rows.push(row(request, [by, by], ABOUT));
    }
    for uri in [
        format!("{EVENTS}/{of_own}"),
        format!("{EVENTS}/{of_other}"),
        EVENTS.into(),
    ] {
        let request = Request::new(format!("delete {uri}"), Method::DELETE, uri, Value::Null);
        rows.push(row(
            request,
            [By::Rbac, By::Policy],
            "refused: DELETE in default",
        ));
    }
    rows
}

const ABOUT: &str = "may only write Events about the Node ";

fn row(request: Request, [by, by_then]: [By; 2], message: &'static str) -> Row {
    Row {
        request,
        by,
        by_then,
        message,
    }
}

fn created(own: &str, other: &str) -> Vec<Row> {
    let changed = |edit: &dyn Fn(&mut Value)| {
        let mut event = event("new", own);
        edit(&mut event);
        event
    };
    let kubelet = changed(&|event| event["reportingController"] = json!("kubelet"));
    let mut rows = Vec::new();
    for (name, event) in [
        ("about another Node", event("new", other)),
        (
            "about a pod",
            changed(&|event| event["regarding"]["kind"] = json!("Pod")),
        ),
        (
            "about nothing",
            changed(&|event| event["regarding"] = json!({})),
        ),
        ("as another controller", kubelet),
    ] {
        let request = Request::new(format!("Event {name}"), Method::POST, EVENTS, event);
        rows.push(row(request, [By::Policy, By::Policy], ABOUT));
    }
    let elsewhere = changed(&|event| event["metadata"]["namespace"] = json!("kube-system"));
    let uri = EVENTS.replace("default", "kube-system");
    let elsewhere = Request::new("Event elsewhere", Method::POST, uri, elsewhere);
    rows.push(row(
        elsewhere,
        [By::Rbac, By::Policy],
        "refused: CREATE in kube-system",
    ));
    // Not a resource that the roles ever name.
    let node = json!({"kind": "Node", "name": own, "namespace": "default"});
    let core = json!({"metadata": {"name": "core"}, "involvedObject": node});
    let uri = "/api/v1/namespaces/default/events";
    let core = Request::new("Event of core/v1", Method::POST, uri, core);
    rows.push(row(core, [By::Rbac, By::Rbac], ""));
    rows
}
