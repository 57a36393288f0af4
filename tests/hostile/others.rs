//! What has nothing to do with the agent's work, which the account has no right to.

use http::Method;
use serde_json::{Value, json};
use untaint::manifests::Account;

use crate::installation::Installation;
use crate::nodes::Row;
use crate::request::{By, JSON_PATCH, MERGE, Request};

/// Each refused by the roles.
pub(crate) fn rows(installation: &Installation) -> Vec<Row> {
    let account = &installation.account;
    let user = account.user();
    let policy = installation.manifests.account.objects();
    let mut requests = secrets(account);
    requests.extend(rights(account, &policy));
    requests.extend(impersonations(&user));
    let rows = requests.into_iter().map(|request| Row {
        request,
        by: By::Rbac,
        by_then: By::Rbac,
        message: "",
    });
    rows.collect()
}

fn secrets(Account { namespace, name }: &Account) -> Vec<Request> {
    let mut requests = Vec::new();
    for resource in ["secrets", "configmaps", "pods", "serviceaccounts"] {
        for scope in [
            String::new(),
            format!("/namespaces/{namespace}"),
            "/namespaces/kube-system".into(),
        ] {
            let uri = format!("/api/v1{scope}/{resource}");
            requests.push(Request::new(
                format!("read {uri}"),
                Method::GET,
                uri,
                Value::Null,
            ));
        }
    }
    let accounts = format!("/api/v1/namespaces/{namespace}/serviceaccounts");
    let mint = |uri: String, spec: Value| {
        let body =
            json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": spec});
        Request::new(format!("mint {uri} {spec}"), Method::POST, uri, body)
    };
    let other = json!({"boundObjectRef": {"apiVersion": "v1", "kind": "Node", "name": "other"}});
    requests.extend([
        mint(format!("{accounts}/{name}/token"), json!({})),
        mint(format!("{accounts}/{name}/token"), other),
        mint(
            "/api/v1/namespaces/kube-system/serviceaccounts/default/token".into(),
            json!({}),
        ),
    ]);
    requests
}

fn rights(Account { namespace, name }: &Account, policy: &str) -> Vec<Request> {
    let mut requests = Vec::new();
    let policies = "/apis/admissionregistration.k8s.io/v1";
    let roles = "/apis/rbac.authorization.k8s.io/v1";
    for uri in [
        format!("{policies}/validatingadmissionpolicies/{policy}"),
        format!("{policies}/validatingadmissionpolicybindings/{policy}"),
        format!("{roles}/clusterroles/{policy}"),
        format!("{roles}/clusterrolebindings/{policy}"),
        format!("{roles}/namespaces/default/roles/{policy}-events"),
    ] {
        let label = json!({"metadata": {"labels": {"x": "y"}}});
        requests.push(Request::patch(format!("change {uri}"), &uri, MERGE, label));
        requests.push(Request::new(
            format!("delete {uri}"),
            Method::DELETE,
            uri,
            Value::Null,
        ));
    }
    let binding = json!({
        "metadata": {"name": "thief"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
        "subjects": [{"kind": "ServiceAccount", "name": name, "namespace": namespace}],
    });
    let pod = json!({
        "metadata": {"name": "thief"},
        "spec": {"nodeName": "other", "serviceAccountName": name, "containers": [{"name": "c", "image": "i"}]},
    });
    let lease = json!({"metadata": {"name": "other"}});
    for (uri, body) in [
        (format!("{roles}/clusterrolebindings"), binding),
        (format!("/api/v1/namespaces/{namespace}/pods"), pod),
        (
            "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases".into(),
            lease,
        ),
    ] {
        requests.push(Request::new(
            format!("create {uri}"),
            Method::POST,
            uri,
            body,
        ));
    }
    let csi_nodes = "/apis/storage.k8s.io/v1/csinodes";
    requests.push(Request::new(
        "read csinodes",
        Method::GET,
        csi_nodes,
        Value::Null,
    ));
    requests
}

/// Also the constrained impersonation of KEP-5284, which is tried before the older one where the server has it.
fn impersonations(user: &str) -> Vec<Request> {
    let removal = json!([{"op": "remove", "path": "/spec/taints/0"}]);
    let claim = "Impersonate-Extra-authentication.kubernetes.io%2Fnode-name";
    let as_whom = [
        (
            "an administrator",
            vec![
                ("Impersonate-User", "admin"),
                ("Impersonate-Group", "system:masters"),
            ],
        ),
        (
            "the other node",
            vec![
                ("Impersonate-User", "system:node:other"),
                ("Impersonate-Group", "system:nodes"),
            ],
        ),
        (
            "the own node",
            vec![
                ("Impersonate-User", "system:node:own"),
                ("Impersonate-Group", "system:nodes"),
            ],
        ),
        ("itself", vec![("Impersonate-User", user)]),
        (
            "itself on the other node",
            vec![("Impersonate-User", user), (claim, "other")],
        ),
        (
            "another account",
            vec![(
                "Impersonate-User",
                "system:serviceaccount:kube-system:default",
            )],
        ),
    ];
    let mut requests = Vec::new();
    for (who, headers) in as_whom {
        for (what, method, uri) in [
            ("a removal", Method::PATCH, "/api/v1/nodes/other"),
            ("a look at nodes", Method::GET, "/api/v1/nodes"),
            ("a look at Secrets", Method::GET, "/api/v1/secrets"),
        ] {
            let body = if method == Method::PATCH {
                removal.clone()
            } else {
                Value::Null
            };
            let mut request = Request::new(format!("as {who}: {what}"), method, uri, body);
            request.content_type = JSON_PATCH;
            let headers = headers
                .iter()
                .map(|(name, value)| (*name, (*value).to_owned()));
            request.headers = headers.collect();
            requests.push(request);
        }
    }
    requests
}
