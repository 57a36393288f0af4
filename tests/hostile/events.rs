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
    let [of_own, of_other, of_kubelet] = [
        format!("{own}.own"),
        format!("{own}.other"),
        format!("{own}.kubelet"),
    ];
    let mut by_kubelet = event(&of_kubelet, own);
    by_kubelet["reportingController"] = json!("kubelet");
    for mut event in [event(&of_own, own), event(&of_other, other), by_kubelet] {
        event["apiVersion"] = json!("events.k8s.io/v1");
        event["kind"] = json!("Event");
        cluster.apply(&event.to_string()).await.unwrap();
    }
    let about = "may only tell of the Node ";
    let changed = |edit: &dyn Fn(&mut Value)| {
        let mut event = event("new", own);
        edit(&mut event);
        event
    };
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
        (
            "as another controller",
            changed(&|event| event["reportingController"] = json!("kubelet")),
        ),
    ] {
        let request = Request::new(format!("Event {name}"), Method::POST, EVENTS, event);
        rows.push(Row {
            request,
            by: By::Policy,
            by_then: By::Policy,
            message: about,
        });
    }
    let mut elsewhere = event("new", own);
    elsewhere["metadata"]["namespace"] = json!("kube-system");
    let uri = EVENTS.replace("default", "kube-system");
    rows.push(Row {
        request: Request::new("Event elsewhere", Method::POST, uri, elsewhere),
        by: By::Rbac,
        by_then: By::Policy,
        message: "refused: CREATE in kube-system",
    });
    let label = json!({"metadata": {"labels": {"x": "y"}}});
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
            json!({"regarding": {"name": own}}),
            By::Server,
        ),
        (
            "of the own made another's",
            &of_own,
            json!({"regarding": {"name": other}}),
            By::Server,
        ),
    ] {
        let uri = format!("{EVENTS}/{name}");
        let request = Request::patch(format!("Event {title}"), uri, MERGE, patch);
        rows.push(Row {
            request,
            by,
            by_then: by,
            message: about,
        });
    }
    for name in [&of_own, &of_other] {
        let uri = format!("{EVENTS}/{name}");
        let request = Request::new(format!("delete {uri}"), Method::DELETE, uri, Value::Null);
        rows.push(Row {
            request,
            by: By::Rbac,
            by_then: By::Policy,
            message: "refused: DELETE in default",
        });
    }
    rows.push(Row {
        request: Request::new("delete all Events", Method::DELETE, EVENTS, Value::Null),
        by: By::Rbac,
        by_then: By::Policy,
        message: "refused: DELETE in default",
    });
    // Not a resource that the roles ever name.
    let core = "/api/v1/namespaces/default/events";
    let involved = json!({"metadata": {"name": "core"}, "involvedObject": {"kind": "Node", "name": own, "namespace": "default"}});
    rows.push(Row {
        request: Request::new("Event of core/v1", Method::POST, core, involved),
        by: By::Rbac,
        by_then: By::Rbac,
        message: "",
    });
    rows
}
