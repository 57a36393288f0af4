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
use untaint::manifests::{Account, Additions, Form, Manifests, Part, Tenants};

use crate::events::{EVENTS, event};
use crate::request::{By, MERGE, Request};
use crate::ways::{Way, kustomize};

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
  gates: [{name: file, file: {path: /run/nonexistent/file}}]
  retaint: {after: 30s}
  publishCondition: {type: example.com/StorageReady}
- name: link
  taint: {key: example.com/link, value: up, effect: NoSchedule}
  gates: [{name: file, file: {path: /run/nonexistent/file}}]
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

/// Another one that has some of the taints of [`CONFIGURATION`] on other conditions, and others.
pub(crate) const OF_THE_NEIGHBOUR: &str = "apiVersion: untaint/v1alpha1
kind: UntaintConfiguration
events: true
rules:
- name: other
  taint: {key: foreign.example/one}
  gates: []
  publishCondition: {type: Other}
- name: storage
  taint: {key: example.com/storage, effect: NoExecute}
  gates: []
- name: gpu
  taint: {key: example.com/gpu}
  gates: []
";

/// So much that all that is refused is refused by the policies.
const TOO_GENEROUS: &str = r#"
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: NAME}
rules:
- {apiGroups: [""], resources: [nodes, nodes/status, nodes/proxy], verbs: ["*"]}
- {apiGroups: [events.k8s.io], resources: [events], verbs: ["*"]}
"#;

/// An account in a cluster, with what was applied for it.
pub(crate) struct Installation {
    pub(crate) cluster: &'static Cluster,
    /// As they are written.
    pub(crate) manifests: Manifests,
    /// What the account is called in the end.
    pub(crate) account: Account,
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
        installation.apply(&[Part::Rbac, Part::Policy]).await;
        installation.in_force().await;
        if Way::of_this_test() == Way::SideBySide {
            installation.neighbour(OF_THE_NEIGHBOUR).await;
        }
        Some(installation)
    }

    /// Nothing is applied yet but the namespace and the account.
    pub(crate) async fn account(namespace: &str, options: Options) -> Option<Self> {
        let way = Way::of_this_test();
        let cluster = way.cluster().await?;
        let account = way.account(namespace);
        let namespace_yaml =
            format!("apiVersion: v1\nkind: Namespace\nmetadata: {{name: {namespace}}}\n");
        cluster.apply(&namespace_yaml).await.unwrap();
        let installation = Self {
            cluster,
            manifests: Manifests {
                configuration: config::parse(&options.configuration).unwrap(),
                // No test here applies the pods.
                files: Vec::new(),
                form: options.form,
                account: way.written(namespace),
                image: "untaint".into(),
                exact_tolerations: false,
                selinux_type: None,
                check_node_uid: options.check_node_uid,
                strict_policy: options.strict_policy,
                tenants: Tenants::default(),
                taint_new_nodes: None,
                additions: Additions::default(),
            },
            account,
            directory: TempDir::new().unwrap(),
        };
        installation.apply(&[]).await;
        Some(installation)
    }

    /// These parts, and the account, in the way of this test.
    pub(crate) async fn apply(&self, parts: &[Part]) {
        let way = Way::of_this_test();
        let yaml = way.made(self.cluster, &self.manifests, parts).await;
        self.cluster.apply(&yaml).await.unwrap();
    }

    /// Another installation, made for an account of the same name and called otherwise in the end.
    pub(crate) async fn neighbour(&self, configuration: &str) -> Self {
        let manifests = Manifests {
            configuration: config::parse(configuration).unwrap(),
            ..self.manifests.clone()
        };
        let yaml = with_account(&manifests, &[Part::Rbac, Part::Policy]);
        let yaml = kustomize(self.cluster, &yaml, "namePrefix: b-\n").await;
        self.cluster.apply(&yaml).await.unwrap();
        Self {
            cluster: self.cluster,
            account: Account {
                name: format!("b-{}", manifests.account.name),
                ..self.account.clone()
            },
            manifests,
            directory: TempDir::new().unwrap(),
        }
    }

    fn namespace(&self) -> &str {
        &self.account.namespace
    }

    /// Gives the account far more rights than it needs.
    pub(crate) async fn be_too_generous(&self) {
        let namespace = self.namespace();
        // Not one for all: tests that apply the same object at the same time may conflict.
        let name = format!("too-generous-{namespace}");
        let role = TOO_GENEROUS.replace("NAME", &name);
        let binding = format!(
            "{role}---\n\
             apiVersion: rbac.authorization.k8s.io/v1\n\
             kind: ClusterRoleBinding\n\
             metadata: {{name: {name}}}\n\
             roleRef: {{apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: {name}}}\n\
             subjects: [{{kind: ServiceAccount, name: {}, namespace: {namespace}}}]\n",
            self.account.name
        );
        self.cluster.apply(&binding).await.unwrap();
        let user = self.account.user();
        let can = ["auth", "can-i", "delete", "nodes", "--as", &user];
        // It fails if the answer is no.
        let granted = async { while self.cluster.kubectl(&can).await.is_err() {} };
        timeout(DEADLINE, granted).await.unwrap();
    }

    /// Policies and roles take effect some time after they are there: returns when they have.
    pub(crate) async fn in_force(&self) {
        let name = format!("{}-{}-in-force", self.namespace(), self.account.name);
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
            let token = self
                .cluster
                .token(self.namespace(), &self.account.name)
                .await;
            let claimless = self.client(&token.unwrap()).await;
            let theft = Request::new("", Method::POST, EVENTS, event("in-force", "another"));
            self.wait_until_refused(&claimless, &theft.dry()).await;
        }
        self.cluster.delete_node(&name).await.unwrap();
    }

    pub(crate) async fn wait_until_refused(&self, client: &Client, request: &Request) {
        let refused = async { while request.send(client).await.refused_by() != By::Policy {} };
        timeout(DEADLINE, refused).await.unwrap();
    }

    /// With a token of the account for this Node.
    pub(crate) async fn client_for(&self, node: &str) -> Client {
        let Account { namespace, name } = &self.account;
        let token = self.cluster.token_for_node(namespace, name, node).await;
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

/// These parts of the manifests, with the account that they are for.
pub(crate) fn with_account(manifests: &Manifests, parts: &[Part]) -> String {
    let Account { namespace, name } = &manifests.account;
    let account = format!(
        "apiVersion: v1\nkind: ServiceAccount\nmetadata: {{name: {name}, namespace: {namespace}}}\n"
    );
    match parts {
        [] => account,
        parts => format!("{account}---\n{}", manifests.render(parts).unwrap()),
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
