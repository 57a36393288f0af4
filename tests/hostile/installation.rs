//! What the program makes of a configuration, applied.

use std::path::PathBuf;

use http::Method;
use kube::Client;
use serde_json::{Value, json};
use tempfile::TempDir;
use testkit::DEADLINE;
use testkit::cluster::{self, Cluster};
use tokio::time::timeout;
use untaint::config;
use untaint::manifests::{Account, Form, Manifests, Part, Tenants};

use crate::events::{EVENTS, event};
use crate::request::{By, MERGE, Request};

/// Every field that has to do with rights.
pub(crate) const CONFIGURATION: &str = "apiVersion: untaint/v1alpha1
kind: UntaintConfiguration
events: true
rules:
- name: network
  taint: {key: example.com/not-ready}
  gates: []
- name: storage
  taint: {key: example.com/storage, effect: NoSchedule}
  gates: [{name: file, file: {path: /nonexistent}}]
  retaint: {after: 30s}
  publishCondition: {type: example.com/StorageReady}
- name: link
  taint: {key: example.com/link, value: up, effect: NoSchedule}
  gates: [{name: file, file: {path: /nonexistent}}]
  retaint: {after: 30s}
- name: gpu
  taint: {key: example.com/gpu}
  nodeSelector: {pool: gpu}
  gates: []
  publishCondition: {type: example.com/GpuReady}
- name: watched
  taint: {key: example.com/watched}
  gates: []
  dryRun: true
";

/// So much that all that is refused is refused by the policies.
const TOO_GENEROUS: &str = r#"
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: too-generous}
rules:
- {apiGroups: [""], resources: [nodes, nodes/status, nodes/proxy], verbs: ["*"]}
- {apiGroups: [events.k8s.io], resources: [events], verbs: ["*"]}
"#;

/// An account in a cluster, with what was applied for it.
pub(crate) struct Installation {
    pub(crate) cluster: &'static Cluster,
    pub(crate) manifests: Manifests,
    directory: TempDir,
}

/// What a test changes of the usual.
pub(crate) struct Options {
    pub(crate) form: Form,
    pub(crate) configuration: String,
    pub(crate) check_node_uid: bool,
    pub(crate) strict_policy: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            form: Form::Daemonset,
            configuration: CONFIGURATION.into(),
            check_node_uid: false,
            strict_policy: false,
        }
    }
}

impl Installation {
    /// With a namespace of its own; the policies are in force. `None`: there is no cluster to be had, and the test has
    /// been reported as skipped.
    pub(crate) async fn new(namespace: &str, options: Options) -> Option<Self> {
        let installation = Self::account(namespace, options).await?;
        let yaml = installation
            .manifests
            .render(&[Part::Rbac, Part::Policy])
            .unwrap();
        installation.cluster.apply(&yaml).await.unwrap();
        installation.in_force().await;
        Some(installation)
    }

    /// Nothing is applied yet.
    pub(crate) async fn account(namespace: &str, options: Options) -> Option<Self> {
        let cluster = cluster::shared().await?;
        let account = Account {
            namespace: namespace.into(),
            name: "agent".into(),
        };
        let accounts = format!(
            "apiVersion: v1\nkind: Namespace\nmetadata: {{name: {namespace}}}\n---\n\
             apiVersion: v1\nkind: ServiceAccount\nmetadata: {{name: agent, namespace: {namespace}}}\n"
        );
        cluster.apply(&accounts).await.unwrap();
        Some(Self {
            cluster,
            manifests: Manifests {
                configuration: config::parse(&options.configuration).unwrap(),
                text: options.configuration,
                form: options.form,
                account,
                image: "untaint".into(),
                exact_tolerations: false,
                selinux_type: None,
                check_node_uid: options.check_node_uid,
                strict_policy: options.strict_policy,
                tenants: Tenants::default(),
            },
            directory: TempDir::new().unwrap(),
        })
    }

    fn namespace(&self) -> &str {
        &self.manifests.account.namespace
    }

    /// Gives the account far more rights than it needs.
    pub(crate) async fn be_too_generous(&self) {
        let namespace = self.namespace();
        let binding = format!(
            "{TOO_GENEROUS}---\n\
             apiVersion: rbac.authorization.k8s.io/v1\n\
             kind: ClusterRoleBinding\n\
             metadata: {{name: too-generous-{namespace}}}\n\
             roleRef: {{apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: too-generous}}\n\
             subjects: [{{kind: ServiceAccount, name: agent, namespace: {namespace}}}]\n"
        );
        self.cluster.apply(&binding).await.unwrap();
        let user = self.manifests.account.user();
        let can = ["auth", "can-i", "delete", "nodes", "--as", &user];
        // It fails if the answer is no.
        let granted = async { while self.cluster.kubectl(&can).await.is_err() {} };
        timeout(DEADLINE, granted).await.unwrap();
    }

    /// Policies and roles take effect some time after they are there: returns when they have.
    pub(crate) async fn in_force(&self) {
        let name = format!("{}-in-force", self.namespace());
        self.cluster
            .create_node(&name, &["x:NoSchedule"])
            .await
            .unwrap();
        let client = self.client_for(&name).await;
        // More than one validation refuses it.
        let theft = json!({"metadata": {"labels": {"x": "y"}}, "spec": {"taints": []}});
        let uri = format!("/api/v1/nodes/{name}");
        let theft = Request::patch("", uri, MERGE, theft).dry();
        self.wait_until_refused(&client, &theft).await;
        if self.manifests.form.has_own_account() && self.manifests.configuration.events {
            let token = self.cluster.token(self.namespace(), "agent").await;
            let claimless = self.client(&token.unwrap()).await;
            let theft = Request::new("", Method::POST, EVENTS, event("in-force", "another"));
            self.wait_until_refused(&claimless, &theft.dry()).await;
        }
        self.cluster.delete_node(&name).await.unwrap();
    }

    async fn wait_until_refused(&self, client: &Client, request: &Request) {
        let refused = async { while request.send(client).await.refused_by() != By::Policy {} };
        timeout(DEADLINE, refused).await.unwrap();
    }

    /// With a token of the account for this Node.
    pub(crate) async fn client_for(&self, node: &str) -> Client {
        let namespace = self.namespace();
        let token = self.cluster.token_for_node(namespace, "agent", node).await;
        self.client(&token.unwrap()).await
    }

    /// With this token.
    pub(crate) async fn client(&self, token: &str) -> Client {
        let kubeconfig = self.kubeconfig(token);
        cluster::client(&kubeconfig).await.unwrap()
    }

    /// The same as a file, in a directory of its own, as tokens are read again from time to time.
    pub(crate) fn kubeconfig(&self, token: &str) -> PathBuf {
        let directory = tempfile::tempdir_in(self.directory.path()).unwrap().keep();
        self.cluster.kubeconfig(&directory, token).unwrap()
    }
}

/// A Node with something of everything.
pub(crate) async fn rich_node(cluster: &Cluster, name: &str) -> Value {
    let taints = [
        "example.com/not-ready:NoExecute",
        "foreign.example/one=x:NoSchedule",
        "example.com/storage:NoSchedule",
        "example.com/watched:NoSchedule",
        "example.com/gpu=x:NoExecute",
        "foreign.example/two:NoExecute",
    ];
    cluster.create_node(name, &taints).await.unwrap();
    let patch = json!({"metadata": {
        "labels": {"pool": "cpu", "team": "a"},
        "annotations": {"example.com/note": "a"},
        "finalizers": ["example.com/held"],
    }});
    cluster.patch_node(name, &patch).await.unwrap();
    let status = json!({"status": {
        "capacity": {"cpu": "4"},
        "conditions": [{"type": "Ready", "status": "True"}, {"type": "Other", "status": "False"}],
    }});
    let patched = [
        "patch",
        "node",
        name,
        "--subresource=status",
        "--patch",
        &status.to_string(),
    ];
    cluster.kubectl(&patched).await.unwrap();
    cluster.node(name).await.unwrap()
}
