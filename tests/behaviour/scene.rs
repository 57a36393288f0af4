//! A Node, an agent, and its gates.

mod requests;

use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use tempfile::TempDir;
use testkit::agent::{Agent, manifests, run_on, write_configuration};
use testkit::api::{ApiServer, Options, Request, Verb};
use testkit::cluster::{self, Cluster};
use testkit::health::HealthEndpoint;
use testkit::{CONFLIST, DEADLINE, node, taints};
use tokio::time::timeout;

pub(crate) use self::requests::{beginning, begins_a_watch};

/// The program under test.
pub(crate) const PROGRAM: &str = env!("CARGO_BIN_EXE_untaint");
/// The taint of the rule in [`Gates::rule`].
pub(crate) const TAINT: &str = "example.com/not-ready:NoExecute";
/// A taint that no rule names.
pub(crate) const FOREIGN: &str = "example.com/foreign=x:NoSchedule";

/// A configuration with one rule: a CNI configuration and a health endpoint.
pub(crate) struct Gates {
    pub(crate) dir: TempDir,
    pub(crate) health: HealthEndpoint,
}

impl Gates {
    /// Both closed.
    pub(crate) async fn closed() -> Self {
        let gates = Self {
            dir: TempDir::new().unwrap(),
            health: HealthEndpoint::start(503).await.unwrap(),
        };
        gates.configure(&gates.rule(""));
        gates
    }

    /// Both open.
    pub(crate) async fn open() -> Self {
        let gates = Self::closed().await;
        gates.open_both();
        gates
    }

    pub(crate) fn configure(&self, rules: &str) {
        write_configuration(&self.config(), rules).unwrap();
    }

    /// The rule, with `more` fields.
    pub(crate) fn rule(&self, more: &str) -> String {
        let (directory, port) = (self.net_d(), self.health.port());
        let directory = directory.display();
        format!(
            "- name: cni\n  taint: {{key: example.com/not-ready}}\n  gates:\n\
             \x20 - {{name: conflist, cniConfig: {{dir: {directory}, network: demo}}}}\n\
             \x20 - {{name: agent, httpGet: {{port: {port}, path: /healthz}}, periodSeconds: 0.05}}\n{more}"
        )
    }

    pub(crate) fn config(&self) -> PathBuf {
        self.dir.path().join("config.yaml")
    }

    pub(crate) fn net_d(&self) -> PathBuf {
        self.dir.path().join("net.d")
    }

    pub(crate) fn open_both(&self) {
        self.write_conflist();
        self.health.set(200);
    }

    /// Renames the file into place, as CNI plugins do.
    pub(crate) fn write_conflist(&self) {
        let directory = self.net_d();
        std::fs::create_dir_all(&directory).unwrap();
        let written = directory.join("10-demo.conflist.tmp");
        std::fs::write(&written, CONFLIST).unwrap();
        std::fs::rename(written, directory.join("10-demo.conflist")).unwrap();
    }

    /// Creates a Node. Returns the kubeconfig file of an agent with the rights of the manifests.
    pub(crate) async fn tainted_node(
        &self,
        cluster: &Cluster,
        name: &str,
        taints: &[&str],
    ) -> PathBuf {
        cluster.create_node(name, taints).await.unwrap();
        let kubeconfig = cluster.agent_kubeconfig(self.dir.path(), name);
        kubeconfig.await.unwrap()
    }

    /// An agent on this Node.
    pub(crate) fn agent(&self, node: &str, kubeconfig: &Path, more: &[&str]) -> Agent {
        self.agent_with(node, kubeconfig, more, &[])
    }

    /// The same with an environment.
    pub(crate) fn agent_with(
        &self,
        node: &str,
        kubeconfig: &Path,
        more: &[&str],
        environment: &[(&str, &str)],
    ) -> Agent {
        self.agent_in(&[PROGRAM], node, kubeconfig, more, environment)
    }

    /// The same, started by a command to which the agent's arguments are added.
    pub(crate) fn agent_in(
        &self,
        command: &[&str],
        node: &str,
        kubeconfig: &Path,
        more: &[&str],
        environment: &[(&str, &str)],
    ) -> Agent {
        let config = self.config();
        let run = run_on(node, &config, kubeconfig);
        // Agents of several tests cannot use the default port at the same time.
        let listen = if more.contains(&"--listen") {
            &[][..]
        } else {
            &["--listen", "off"]
        };
        let log = &["--log-level", "debug"];
        let all = [&command[1..], &run, log, listen, more].concat();
        // Many tests count requests. The self-check has its own tests.
        let environment = [&[("UNTAINT_NO_POLICY_CHECK", "true")], environment].concat();
        Agent::start(command[0], &all, &environment).unwrap()
    }
}

/// A Node on a real API server, for an agent with the rights of the manifests.
pub(crate) struct OnCluster {
    pub(crate) cluster: &'static Cluster,
    pub(crate) name: &'static str,
    pub(crate) gates: Gates,
    pub(crate) kubeconfig: PathBuf,
}

impl OnCluster {
    /// `None` if there is no cluster: the test was reported as skipped.
    pub(crate) async fn with(name: &'static str, taints: &[&str], gates: Gates) -> Option<Self> {
        let cluster = cluster::shared().await?;
        let kubeconfig = gates.tainted_node(cluster, name, taints).await;
        Some(Self {
            cluster,
            name,
            gates,
            kubeconfig,
        })
    }

    pub(crate) fn agent(&self, more: &[&str]) -> Agent {
        self.gates.agent(self.name, &self.kubeconfig, more)
    }

    /// Waits until the Node has these taints and the one that the server adds.
    pub(crate) async fn wait_for_taints(&self, wanted: &[&str]) -> Value {
        self.cluster
            .wait_for_node(self.name, |node| own_taints(node) == wanted)
            .await
            .unwrap()
    }

    pub(crate) async fn set_taints(&self, wanted: &[&str]) {
        let set = self.cluster.set_taints(self.name, wanted);
        set.await.unwrap();
    }

    pub(crate) async fn taints(&self) -> Vec<String> {
        own_taints(&self.cluster.node(self.name).await.unwrap())
    }
}

/// The taints without `node.kubernetes.io/not-ready`, which the real server adds to every new Node.
pub(crate) fn own_taints(node: &Value) -> Vec<String> {
    let mut taints = taints(node);
    taints.retain(|taint| !taint.starts_with("node.kubernetes.io/"));
    taints
}

/// The Node `node` on the stand-in.
pub(crate) struct OnStandIn {
    pub(crate) server: ApiServer,
    pub(crate) gates: Gates,
    pub(crate) kubeconfig: PathBuf,
}

impl OnStandIn {
    pub(crate) async fn with(taints: &[&str], gates: Gates) -> Self {
        Self::with_options(Options::default(), taints, gates).await
    }

    pub(crate) async fn with_options(options: Options, taints: &[&str], gates: Gates) -> Self {
        let server = ApiServer::start(options).await.unwrap();
        server.create_node(node("node", taints));
        let kubeconfig = server.kubeconfig(gates.dir.path()).unwrap();
        Self {
            server,
            gates,
            kubeconfig,
        }
    }

    pub(crate) fn agent(&self, more: &[&str]) -> Agent {
        self.gates.agent("node", &self.kubeconfig, more)
    }

    pub(crate) async fn wait_for_taints(&self, wanted: &[&str]) {
        self.server
            .wait_for_node("node", |node| taints(node) == wanted)
            .await
            .unwrap();
    }

    /// Replaces the taints as another client would.
    pub(crate) fn set_taints(&self, wanted: &[&str]) {
        self.server.update_node("node", |stored| {
            stored["spec"]["taints"] = node("node", wanted)["spec"]["taints"].clone();
        });
    }

    pub(crate) fn count(&self, verb: Verb) -> usize {
        self.all(verb).len()
    }

    pub(crate) fn all(&self, verb: Verb) -> Vec<Request> {
        self.server
            .requests()
            .into_iter()
            .filter(|request| request.verb == verb)
            .collect()
    }

    /// The verbs of all requests, in order.
    pub(crate) fn verbs(&self) -> Vec<Verb> {
        self.server
            .requests()
            .iter()
            .map(|request| request.verb)
            .collect()
    }

    pub(crate) async fn wait_for(&self, verb: Verb, count: usize) {
        let enough =
            |all: &[Request]| all.iter().filter(|request| request.verb == verb).count() >= count;
        self.server.wait_for_requests(enough).await.unwrap();
    }
}

/// Grants untaint's `ServiceAccount` the roles that `untaint manifests` writes for these rules. Returns when the server
/// allows `allows`.
pub(crate) async fn grant(cluster: &Cluster, rules: &str, allows: [&str; 2], namespace: &str) {
    let directory = TempDir::new().unwrap();
    let config = directory.path().join("config.yaml");
    write_configuration(&config, rules).unwrap();
    let manifests = manifests(PROGRAM, &config, &["--only", "rbac"]).await;
    let mut granted: Vec<Value> = serde_yaml::from_multiple(&manifests.unwrap()).unwrap();
    for role in &mut granted {
        // The roles get their own names, so that the roles of other tests do not change.
        for name in ["/metadata/name", "/roleRef/name"] {
            if let Some(name) = role.pointer_mut(name) {
                let suffix = allows[1].replace('/', "-");
                *name = format!("{}-for-{suffix}", name.as_str().unwrap()).into();
            }
        }
    }
    let list = json!({"apiVersion": "v1", "kind": "List", "items": granted});
    let file = directory.path().join("roles.json");
    std::fs::write(&file, list.to_string()).unwrap();
    // With `--server-side`, because several tests can do this at the same time. Otherwise the second creation would
    // fail.
    let apply = [
        "apply",
        "--server-side",
        "--filename",
        file.to_str().unwrap(),
    ];
    cluster.kubectl(&apply).await.unwrap();
    let agent = ["--as", "system:serviceaccount:untaint:untaint"];
    let can = [
        &["auth", "can-i", "--namespace", namespace][..],
        &allows,
        &agent,
    ]
    .concat();
    // The command fails if the answer is no.
    let allowed = async { while cluster.kubectl(&can).await.is_err() {} };
    timeout(DEADLINE, allowed).await.unwrap();
}
