//! Rights that only some configurations need.

use std::fs;

use serde_json::{Value, json};
use tempfile::tempdir;
use testkit::DEADLINE;
use testkit::cluster::Cluster;
use tokio::time::timeout;

/// What `rbac/` does not grant, since its configuration has no use for it. That `untaint manifests` grants it to those is shown in `tests/manifests`.
#[derive(Clone, Copy)]
pub(crate) struct Right {
    pub(crate) group: &'static str,
    pub(crate) resource: &'static str,
    pub(crate) verbs: &'static [&'static str],
    /// The whole cluster where there is none.
    pub(crate) namespace: Option<&'static str>,
}

impl Right {
    /// A role with this right, and its binding to the agents' `ServiceAccount`.
    fn objects(&self) -> Value {
        let kind = self.namespace.map_or("ClusterRole", |_| "Role");
        let name = format!("untaint-{}", self.resource.replace('/', "-"));
        let metadata = json!({"name": name, "namespace": self.namespace});
        let group = "rbac.authorization.k8s.io";
        let role = json!({
            "apiVersion": format!("{group}/v1"),
            "kind": kind,
            "metadata": metadata,
            "rules": [{"apiGroups": [self.group], "resources": [self.resource], "verbs": self.verbs}],
        });
        let binding = json!({
            "apiVersion": format!("{group}/v1"),
            "kind": format!("{kind}Binding"),
            "metadata": metadata,
            "roleRef": {"apiGroup": group, "kind": kind, "name": name},
            "subjects": [{"kind": "ServiceAccount", "name": "untaint", "namespace": "untaint"}],
        });
        json!({"apiVersion": "v1", "kind": "List", "items": [role, binding]})
    }
}

/// Gives it to the agents' `ServiceAccount`, and returns when the server knows.
pub(crate) async fn grant(cluster: &Cluster, right: Right) {
    let directory = tempdir().unwrap();
    let file = directory.path().join("role.json");
    fs::write(&file, right.objects().to_string()).unwrap();
    // By the server, since several tests may do it at once: of two who find no role, a client fails to make the second.
    let apply = [
        "apply",
        "--server-side",
        "--filename",
        file.to_str().unwrap(),
    ];
    cluster.kubectl(&apply).await.unwrap();
    let (resource, subresource) = right
        .resource
        .split_once('/')
        .unwrap_or((right.resource, ""));
    let [resource, subresource] = [
        format!("{resource}.{}", right.group),
        format!("--subresource={subresource}"),
    ];
    let verb = right.verbs[0];
    let namespace = right.namespace.unwrap_or("default");
    let can = [
        "auth",
        "can-i",
        verb,
        resource.trim_end_matches('.'),
        &subresource,
        "--namespace",
        namespace,
        "--as",
        "system:serviceaccount:untaint:untaint",
    ];
    // It fails if the answer is no.
    let granted = async { while cluster.kubectl(&can).await.is_err() {} };
    timeout(DEADLINE, granted).await.unwrap();
}
