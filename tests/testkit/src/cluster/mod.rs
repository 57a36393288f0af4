//! The real API server, with etcd, on free loopback ports: TLS, the Node and RBAC authorizers, `NodeRestriction`, an
//! audit log. No controllers, no scheduler, no kubelet.

mod agent;
mod audit;
mod control_plane;
mod nodes;
mod process;
#[cfg(test)]
mod tests;
mod tokens;

use std::net::SocketAddr;
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
use crate::assets::CONTROL_PLANE;
use crate::skip::say;

const JSON: &str = "application/json";
/// A chosen port may be taken by the time it is used; so often a start is tried.
const ATTEMPTS: usize = 3;

/// A running control plane; its processes and files go when it is dropped, or this process ends in whatever way.
pub struct Cluster {
    control_plane: ControlPlane,
    programs: PathBuf,
    /// Set once the agents' `ServiceAccount` and RBAC are there.
    agents_allowed: OnceCell<()>,
}

/// The cluster of this test program, in which each test has Nodes of its own.
///
/// `None`: the programs cannot be had; the test is to return, having been reported as skipped. With `CI=true` it
/// panics instead.
pub async fn shared() -> Option<&'static Cluster> {
    static SHARED: OnceCell<Result<Cluster>> = OnceCell::const_new();
    CONTROL_PLANE.or_skip().await?;
    match SHARED.get_or_init(|| Cluster::start(&[])).await {
        Ok(cluster) => Some(cluster),
        Err(error) => panic!("the cluster did not start: {error:#}"),
    }
}

/// A cluster of the test's own, with more flags for kube-apiserver. `None`: as for [`shared`].
pub async fn fresh(flags: &[&str]) -> Option<Cluster> {
    CONTROL_PLANE.or_skip().await?;
    match Cluster::start(flags).await {
        Ok(cluster) => Some(cluster),
        Err(error) => panic!("the cluster did not start: {error:#}"),
    }
}

impl Cluster {
    /// Starts one, with more flags for kube-apiserver, and returns when it is ready.
    pub async fn start(flags: &[&str]) -> Result<Self> {
        let programs = CONTROL_PLANE
            .directory()
            .await
            .map_err(anyhow::Error::msg)?;
        let mut attempt = 1;
        let control_plane = loop {
            match ControlPlane::start(programs, flags).await {
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

    /// Ends kube-apiserver and starts it anew on the same data and port. Its watch cache is then empty.
    pub async fn restart_api_server(&mut self) -> Result<()> {
        self.stop_api_server();
        self.start_api_server().await
    }

    /// Ends kube-apiserver.
    pub fn stop_api_server(&mut self) {
        self.control_plane.stop_api_server();
    }

    /// Starts kube-apiserver anew on the same data and port, and returns when it is ready.
    pub async fn start_api_server(&mut self) -> Result<()> {
        self.control_plane.start_api_server().await
    }

    /// Takes all objects out of etcd, kube-apiserver being stopped: it makes its own anew, and gets all others anew from
    /// who wants them.
    pub async fn lose_data(&mut self) -> Result<()> {
        // From the first key to the last.
        let all = json!({"key": "AA==", "range_end": "AA=="});
        self.ask_etcd("/v3/kv/deleterange", &all).await?;
        self.agents_allowed = OnceCell::new();
        Ok(())
    }

    /// Keeps what etcd holds, for [`Self::restore_data`]; kube-apiserver is stopped.
    pub fn back_up_data(&mut self) -> Result<()> {
        self.control_plane.back_up()
    }

    /// Gives etcd the data it had at the time of [`Self::back_up_data`], with the revisions of then; kube-apiserver is
    /// stopped.
    pub fn restore_data(&mut self) -> Result<()> {
        self.control_plane.restore()
    }

    /// Where kube-apiserver listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.control_plane.address()
    }

    /// A kubeconfig file of a member of `system:masters`.
    #[must_use]
    pub fn admin_kubeconfig(&self) -> PathBuf {
        self.control_plane.admin_kubeconfig()
    }

    /// A client of a member of `system:masters`, for the current runtime.
    pub async fn client(&self) -> Result<Client> {
        client(&self.admin_kubeconfig()).await
    }

    /// kube-apiserver's, `v1.37.2` for example.
    pub async fn version(&self) -> Result<String> {
        let version = self.request(Method::GET, "/version", "", None).await?;
        let version = version["gitVersion"].as_str();
        Ok(version.context("a gitVersion")?.to_owned())
    }

    /// Runs kubectl as the administrator and returns its standard output; an error has its standard error.
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

    /// Applies these objects, which are YAML, as the administrator.
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

    /// One request as the administrator; an error has the server's message.
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

/// What this kubeconfig file says.
pub(crate) async fn config(kubeconfig: &Path) -> Result<kube::Config> {
    let file = Kubeconfig::read_from(kubeconfig)?;
    let options = KubeConfigOptions::default();
    Ok(kube::Config::from_custom_kubeconfig(file, &options).await?)
}
