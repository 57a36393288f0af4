//! A real API server with etcd, on free loopback ports, with TLS, the Node and RBAC authorizers, `NodeRestriction` and
//! an audit log. It has no controllers, no scheduler and no kubelet, but can be started for real nodes and with the first
//! two.

mod agent;
mod audit;
mod control_plane;
mod controllers;
mod features;
mod nodes;
mod process;
#[cfg(test)]
mod tests;
mod tokens;

use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, ensure};
use http::{Method, Request, header};
use kube::Client;
use kube::config::{KubeConfigOptions, Kubeconfig};
use serde_json::{Value, json};
use tempfile::NamedTempFile;
use tokio::process::Command;
use tokio::sync::OnceCell;

pub use self::audit::AuditEntry;
use self::control_plane::ControlPlane;
pub use self::control_plane::SERVICE;
pub use self::controllers::Controllers;
pub use self::features::{feature_gate, streaming_lists};
use crate::assets::CONTROL_PLANE;
use crate::skip::say;

const JSON: &str = "application/json";
/// The number of tries to start, because another program can take a port first.
const ATTEMPTS: usize = 3;

/// A running control plane. Its processes and files are removed when it is dropped, and also when this process is
/// killed.
pub struct Cluster {
    control_plane: ControlPlane,
    programs: PathBuf,
    /// Set when the `ServiceAccount` and the roles of the agents exist.
    agents_allowed: OnceCell<()>,
}

/// The cluster of this test program, in which each test has its own Nodes.
///
/// `None` if the programs cannot be built: the test is reported as skipped and must return. With `CI=true`, this panics
/// instead.
pub async fn shared() -> Option<&'static Cluster> {
    static SHARED: OnceCell<Result<Cluster>> = OnceCell::const_new();
    CONTROL_PLANE.or_skip().await?;
    match SHARED.get_or_init(|| Cluster::start(&[])).await {
        Ok(cluster) => Some(cluster),
        Err(error) => panic!("the cluster did not start: {error:#}"),
    }
}

/// A cluster for one test, with more flags for kube-apiserver. `None` as for [`shared`].
pub async fn fresh(flags: &[&str]) -> Option<Cluster> {
    CONTROL_PLANE.or_skip().await?;
    match Cluster::start(flags).await {
        Ok(cluster) => Some(cluster),
        Err(error) => panic!("the cluster did not start: {error:#}"),
    }
}

impl Cluster {
    /// Starts a cluster, with more flags for kube-apiserver, and returns when it is ready. The feature gates have their
    /// defaults, except that [tokens for Nodes](Self::token_for_node) are always on.
    pub async fn start(flags: &[&str]) -> Result<Self> {
        Self::start_on(None, flags).await
    }

    /// Starts a cluster whose server listens on all addresses of the machine at the port of [`SERVICE`], for nodes that
    /// reach it at `address`, and for pods that have their tokens mounted.
    pub async fn start_for_nodes(address: Ipv4Addr) -> Result<Self> {
        // For requests to kubelets, such as port-forward. There is no DNS for the names of Nodes.
        let flags = ["--kubelet-preferred-address-types=InternalIP"];
        Self::start_on(Some(address), &flags).await
    }

    async fn start_on(node_network: Option<Ipv4Addr>, flags: &[&str]) -> Result<Self> {
        let programs = CONTROL_PLANE
            .directory()
            .await
            .map_err(anyhow::Error::msg)?;
        let mut flags = flags.to_vec();
        if feature_gate("ServiceAccountTokenNodeBinding").await == Some(false) {
            flags.push("--feature-gates=ServiceAccountTokenNodeBinding=true");
        }
        let mut attempt = 1;
        let control_plane = loop {
            match ControlPlane::start(programs, &flags, node_network).await {
                Err(_) if attempt < ATTEMPTS => attempt += 1,
                started => break started?,
            }
        };
        let cluster = Self {
            control_plane,
            programs: programs.to_owned(),
            agents_allowed: OnceCell::new(),
        };
        say(&format!("kube-apiserver {}", cluster.version().await?));
        Ok(cluster)
    }

    /// Restarts kube-apiserver with the same data and port. Its watch cache is then empty.
    pub async fn restart_api_server(&mut self) -> Result<()> {
        self.stop_api_server();
        self.start_api_server().await
    }

    pub fn stop_api_server(&mut self) {
        self.control_plane.stop_api_server();
    }

    /// Starts kube-apiserver with the same data and port, and returns when it is ready.
    pub async fn start_api_server(&mut self) -> Result<()> {
        self.control_plane.start_api_server().await
    }

    /// Deletes all objects in etcd while kube-apiserver is stopped. kube-apiserver then creates its own objects again.
    pub async fn lose_data(&mut self) -> Result<()> {
        // From the first key to the last.
        let all = json!({"key": "AA==", "range_end": "AA=="});
        self.ask_etcd("/v3/kv/deleterange", &all).await?;
        self.agents_allowed = OnceCell::new();
        Ok(())
    }

    /// Copies the data of etcd for [`Self::restore_data`]. kube-apiserver must be stopped.
    pub fn back_up_data(&mut self) -> Result<()> {
        self.control_plane.back_up()
    }

    /// Restores the data of [`Self::back_up_data`], with its revisions. kube-apiserver must be stopped.
    pub fn restore_data(&mut self) -> Result<()> {
        self.control_plane.restore()
    }

    /// The address of kube-apiserver.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.control_plane.address()
    }

    /// The directory of the logs of the control plane.
    #[must_use]
    pub fn directory(&self) -> &Path {
        self.control_plane.directory()
    }

    /// A kubeconfig file of a member of `system:masters`.
    #[must_use]
    pub fn admin_kubeconfig(&self) -> PathBuf {
        self.control_plane.admin_kubeconfig()
    }

    /// The directory of kubectl and the control plane's programs.
    pub fn programs(&self) -> &Path {
        &self.programs
    }

    /// A client of a member of `system:masters`, for the current runtime.
    pub async fn client(&self) -> Result<Client> {
        client(&self.admin_kubeconfig()).await
    }

    /// The version of kube-apiserver, for example `v1.37.2`.
    pub async fn version(&self) -> Result<String> {
        let version = self.request(Method::GET, "/version", "", None).await?;
        let version = version["gitVersion"].as_str();
        Ok(version.context("a gitVersion")?.to_owned())
    }

    /// Runs kubectl as the administrator, and returns its standard output. An error contains its standard error.
    pub async fn kubectl(&self, arguments: &[&str]) -> Result<String> {
        let output = Command::new(self.programs.join("kubectl"))
            .arg("--kubeconfig")
            .arg(self.admin_kubeconfig())
            .arg("--cache-dir")
            .arg(self.control_plane.kubectl_cache())
            .args(arguments)
            .kill_on_drop(true)
            .output()
            .await?;
        ensure!(
            output.status.success(),
            "kubectl {}: {}",
            arguments.join(" "),
            String::from_utf8_lossy(&output.stderr)
        );
        Ok(String::from_utf8(output.stdout)?)
    }

    /// Applies these objects in YAML as the administrator.
    pub async fn apply(&self, objects: &str) -> Result<()> {
        let file = NamedTempFile::new()?;
        std::fs::write(file.path(), objects)?;
        let file = file.path().to_str().context("a path in UTF-8")?;
        self.kubectl(&["apply", "--filename", file]).await?;
        Ok(())
    }

    /// One request to etcd's JSON gateway.
    async fn ask_etcd(&self, path: &str, body: &Value) -> Result<()> {
        let file = NamedTempFile::new()?;
        std::fs::write(file.path(), body.to_string())?;
        let file = file.path().to_str().context("a path in UTF-8")?;
        let to_etcd = ["--server", self.control_plane.etcd_url()];
        let request = ["create", "--raw", path, "--filename", file];
        self.kubectl(&[&to_etcd[..], &request].concat()).await?;
        Ok(())
    }

    /// One request as the administrator. An error contains the server's message.
    async fn request(
        &self,
        method: Method,
        uri: &str,
        content_type: &str,
        body: Option<&Value>,
    ) -> Result<Value> {
        let request = Request::builder()
            .method(method.clone())
            .uri(uri)
            .header(header::CONTENT_TYPE, content_type)
            .body(body.map_or_else(Vec::new, |body| body.to_string().into_bytes()))?;
        let answer = self.client().await?.request(request).await;
        answer.with_context(|| format!("{method} {uri}"))
    }
}

/// A client that reads this kubeconfig file.
pub async fn client(kubeconfig: &Path) -> Result<Client> {
    Ok(Client::try_from(config(kubeconfig).await?)?)
}

/// The client configuration in this kubeconfig file.
pub(crate) async fn config(kubeconfig: &Path) -> Result<kube::Config> {
    let file = Kubeconfig::read_from(kubeconfig)?;
    let options = KubeConfigOptions::default();
    Ok(kube::Config::from_custom_kubeconfig(file, &options).await?)
}
