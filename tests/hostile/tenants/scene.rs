//! Clusters with the policies in force, and a tenant in them.

use std::path::PathBuf;
use std::process::{Command, Output};

use http::Method;
use kube::Client;
use serde_json::{Value, json};
use tempfile::{NamedTempFile, TempDir};
use testkit::DEADLINE;
use testkit::agent::write_configuration;
use testkit::cluster::{Cluster, client, fresh};
use tokio::sync::OnceCell;
use tokio::time::timeout;

use crate::request::{Answer, Request, STRATEGIC};

/// The tenant's Namespace, in which its ServiceAccount `tenant` may do what those may who have the role `edit`.
pub(crate) const SHOP: &str = "shop";
/// The policies' Namespaces of exemption.
pub(crate) const LISTED: &str = "listed";
pub(crate) const LABELLED: &str = "labelled";
/// The exempt ServiceAccount, in [`SHOP`].
pub(crate) const AGENT: &str = "agent";
pub(crate) const LABEL: &str = "untaint/may-tolerate-startup-taints";

/// What the agent is configured for where pods are refused.
const RULES: &str = "
- {name: network, taint: {key: example.com/network}, gates: []}
- {name: storage, taint: {key: example.com/storage, value: pending, effect: NoSchedule}, gates: [], dryRun: true}
";

/// A cluster and who asks it.
pub(crate) struct Scene {
    pub(crate) cluster: Cluster,
    /// The kubeconfig file of the tenant, in a directory that ends with this.
    tenant: PathBuf,
    _directory: TempDir,
}

/// Who asks.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Caller {
    /// The ServiceAccount of [`SHOP`], by its token.
    Tenant,
    /// A member of `system:masters`.
    Admin,
    /// The kubelet of this Node.
    Kubelet(&'static str),
    /// As Kubernetes runs it.
    Scheduler,
}

impl Answer {
    /// Names of the policies whose warnings came with it.
    pub(crate) fn warned_by(&self) -> Vec<&str> {
        let names = self.warnings.iter().map(|warning| {
            let text = warning.strip_prefix("Validation failed for ValidatingAdmissionPolicy '");
            let (name, text) = text.unwrap().split_once("' with binding '").unwrap();
            let (_, message) = text.split_once("': ").unwrap();
            // An expression that cannot be evaluated has another.
            assert!(message.starts_with("pods in the namespace "), "{message}");
            name
        });
        names.collect()
    }

    #[track_caller]
    pub(crate) fn assert_accepted(&self) {
        assert!((200..300).contains(&self.code), "{self:?}");
        assert_eq!(self.warnings, [""; 0]);
    }

    #[track_caller]
    pub(crate) fn assert_accepted_with_warning(&self, policy: &str) {
        assert!((200..300).contains(&self.code), "{self:?}");
        assert_eq!(self.warned_by(), [policy]);
    }

    /// The message begins with what API server and binding say.
    #[track_caller]
    pub(crate) fn assert_refused(&self, message: &str) {
        assert_eq!(
            (self.code, self.body["reason"].as_str()),
            (403, Some("Forbidden")),
            "{self:?}"
        );
        assert!(
            self.message().contains(message),
            "{:?}: {message}",
            self.message()
        );
    }
}

/// The cluster of this test program where pods are refused, by the policies `untaint-tolerations` and
/// `untaint-node-names`.
pub(crate) async fn refusing() -> Option<&'static Scene> {
    static SCENE: OnceCell<Option<Scene>> = OnceCell::const_new();
    let scene = SCENE.get_or_init(|| async {
        let scene = Scene::start(&[]).await?;
        let flags = [
            "--toleration-policy",
            "--node-name-policy=Deny",
            "--exempt-namespace=listed",
            "--exempt-service-account=shop:agent,elsewhere:default",
        ];
        scene.apply_policies(RULES, &flags).await;
        scene.policies_are_in_force().await;
        Some(scene)
    });
    scene.await.as_ref()
}

impl Scene {
    /// With the Namespaces and their tenant, without policies.
    pub(crate) async fn start(flags: &[&str]) -> Option<Self> {
        let cluster = fresh(flags).await?;
        for namespace in [SHOP, LISTED, LABELLED, "elsewhere", "untaint"] {
            let create = ["create", "namespace", namespace];
            cluster.kubectl(&create).await.unwrap();
        }
        let label = format!("{LABEL}=true");
        for command in [
            vec!["label", "namespace", LABELLED, &label],
            vec!["create", "serviceaccount", "tenant", "-n", SHOP],
            // What the role `edit` is made of; the controller that puts it together does not run here.
            vec![
                "create",
                "rolebinding",
                "tenant",
                "-n",
                SHOP,
                "--clusterrole=system:aggregate-to-edit",
                "--serviceaccount=shop:tenant",
            ],
        ] {
            cluster.kubectl(&command).await.unwrap();
        }
        let token = cluster.token(SHOP, "tenant").await.unwrap();
        let directory = TempDir::new().unwrap();
        let tenant = cluster.kubeconfig(directory.path(), &token).unwrap();
        Some(Self {
            cluster,
            tenant,
            _directory: directory,
        })
    }

    /// Applies what the program writes for these rules.
    pub(crate) async fn apply_policies(&self, rules: &str, flags: &[&str]) {
        let output = manifests(rules, flags);
        assert!(output.status.success(), "{output:?}");
        let yaml = String::from_utf8(output.stdout).unwrap();
        self.cluster.apply(&yaml).await.unwrap();
    }

    /// A policy takes effect some time after it is there.
    async fn policies_are_in_force(&self) {
        self.wait_for(async || {
            let tolerating = json!({"tolerations": [{"operator": "Exists"}]});
            let named = json!({"nodeName": "node"});
            let mut refused = 0;
            for spec in [&tolerating, &named] {
                let answer = self.try_pod(Caller::Tenant, SHOP, &pod(spec)).await;
                refused += u32::from(answer.code == 403);
            }
            let mut both = pod(&tolerating);
            both["spec"]["nodeName"] = json!("node");
            let deployment = super::templates::deployment(&template(&both["spec"]));
            let uri = "/apis/apps/v1/namespaces/shop/deployments?dryRun=All";
            let answer = self.post(Caller::Tenant, uri, &deployment).await;
            refused == 2 && answer.warnings.len() == 2
        })
        .await;
    }

    /// Asks until it is so.
    pub(crate) async fn wait_for(&self, is_so: impl AsyncFn() -> bool) {
        let asked = async { while !is_so().await {} };
        timeout(DEADLINE, asked).await.unwrap();
    }

    /// Whether this pod could be made there; it is not.
    pub(crate) async fn try_pod(&self, caller: Caller, namespace: &str, pod: &Value) -> Answer {
        let uri = format!("/api/v1/namespaces/{namespace}/pods");
        let request = Request::new("", Method::POST, uri, pod.clone());
        self.ask(caller, request.dry()).await
    }

    pub(crate) async fn post(&self, caller: Caller, uri: &str, object: &Value) -> Answer {
        let request = Request::new("", Method::POST, uri, object.clone());
        self.ask(caller, request).await
    }

    pub(crate) async fn patch(&self, caller: Caller, uri: &str, patch: &Value) -> Answer {
        let request = Request::patch("", uri, STRATEGIC, patch.clone());
        self.ask(caller, request).await
    }

    pub(crate) async fn ask(&self, caller: Caller, mut request: Request) -> Answer {
        let (user, group) = match caller {
            Caller::Tenant | Caller::Admin => (None, None),
            Caller::Kubelet(node) => (Some(format!("system:node:{node}")), Some("system:nodes")),
            Caller::Scheduler => (Some("system:kube-scheduler".into()), None),
        };
        let user = user.map(|user| ("impersonate-user", user));
        let group = group.map(|group| ("impersonate-group", group.to_owned()));
        request.headers.extend(user.into_iter().chain(group));
        request.send(&self.client(caller).await).await
    }

    /// For the current runtime; impersonation is the request's.
    pub(crate) async fn client(&self, caller: Caller) -> Client {
        match caller {
            Caller::Tenant => client(&self.tenant).await.unwrap(),
            _ => self.cluster.client().await.unwrap(),
        }
    }
}

/// What the program makes of these rules.
pub(crate) fn manifests(rules: &str, flags: &[&str]) -> Output {
    let configuration = NamedTempFile::new().unwrap();
    write_configuration(configuration.path(), rules).unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_untaint"))
        .args(["manifests", "--only=policy", "--config"])
        .arg(configuration.path())
        .args(flags)
        .output();
    output.unwrap()
}

/// A pod with a container, and what `spec` says.
pub(crate) fn pod(spec: &Value) -> Value {
    let mut pod = json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"generateName": "pod-"},
        "spec": spec,
    });
    pod["spec"]["containers"] = json!([{"name": "main", "image": "main"}]);
    pod
}

/// A pod that tolerates this and nothing else.
pub(crate) fn tolerating(toleration: &Value) -> Value {
    pod(&json!({"tolerations": [toleration]}))
}

/// A template of pods with this spec.
pub(crate) fn template(spec: &Value) -> Value {
    json!({"metadata": {"labels": {"app": "app"}}, "spec": spec})
}
