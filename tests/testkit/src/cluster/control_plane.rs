//! etcd and kube-apiserver.

use std::fs;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Result, bail};
use http::Request;
use rcgen::KeyPair;
use tempfile::TempDir;
use tokio::time::{Instant, sleep};

use super::client;
use super::process::Process;
use crate::kubeconfig::{self, Credentials};
use crate::tls::Authority;

/// A start takes about three seconds, more on a loaded machine.
const START: Duration = Duration::from_secs(90);
/// There is nothing to wait for but an answer, so that is asked for so often.
const POLL: Duration = Duration::from_millis(50);

/// Every request at level Metadata. A watch is logged when it has started and again when it ends.
const AUDIT_POLICY: &str = r#"{"apiVersion": "audit.k8s.io/v1", "kind": "Policy",
"omitStages": ["RequestReceived"], "rules": [{"level": "Metadata"}]}"#;

/// The two processes and their files.
pub(super) struct ControlPlane {
    // Dropped in this order: etcd takes the directory with it.
    api_server: Process,
    _etcd: Process,
    directory: PathBuf,
    etcd_url: String,
    program: PathBuf,
    arguments: Vec<String>,
    address: SocketAddr,
}

impl ControlPlane {
    /// Fails when a port was taken meanwhile, among others.
    pub(super) async fn start(programs: &Path, flags: &[&str]) -> Result<Self> {
        let directory = TempDir::with_prefix("untaint-cluster-")?;
        let (etcd_url, peer_url) = (
            format!("http://{}", free_address()?),
            format!("http://{}", free_address()?),
        );
        let address = free_address()?;
        let arguments = arguments(directory.path(), address, &etcd_url, flags)?;

        // From here on the process removes it, even if this one is killed.
        let directory = directory.keep();
        let etcd = Process::start(
            &programs.join("etcd"),
            &[
                format!("--data-dir={}", directory.join("etcd").display()),
                format!("--listen-client-urls={etcd_url}"),
                format!("--advertise-client-urls={etcd_url}"),
                format!("--listen-peer-urls={peer_url}"),
                format!("--initial-advertise-peer-urls={peer_url}"),
                format!("--initial-cluster=default={peer_url}"),
                "--unsafe-no-fsync".to_owned(),
            ],
            &directory.join("etcd.log"),
            Some(&directory),
        )?;
        let program = programs.join("kube-apiserver");
        let api_server = Process::start(&program, &arguments, &log(&directory), None)?;
        let mut control_plane = Self {
            api_server,
            _etcd: etcd,
            directory,
            etcd_url,
            program,
            arguments,
            address,
        };
        control_plane.ready().await?;
        Ok(control_plane)
    }

    pub(super) fn stop_api_server(&mut self) {
        self.api_server.kill();
    }

    pub(super) async fn start_api_server(&mut self) -> Result<()> {
        let log = log(&self.directory);
        self.api_server = Process::start(&self.program, &self.arguments, &log, None)?;
        self.ready().await
    }

    pub(super) fn etcd_url(&self) -> &str {
        &self.etcd_url
    }

    pub(super) fn address(&self) -> SocketAddr {
        self.address
    }

    pub(super) fn admin_kubeconfig(&self) -> PathBuf {
        self.directory.join("kubeconfig")
    }

    pub(super) fn authority(&self) -> Result<String> {
        Ok(fs::read_to_string(self.directory.join("ca.crt"))?)
    }

    /// What the tokens of ServiceAccounts are signed with.
    pub(super) fn token_key(&self) -> PathBuf {
        self.directory.join("tokens.key")
    }

    pub(super) fn audit_log(&self) -> PathBuf {
        self.directory.join("audit.log")
    }

    /// Not the home directory's: it must end with the cluster.
    pub(super) fn kubectl_cache(&self) -> PathBuf {
        self.directory.join("kubectl")
    }

    async fn ready(&mut self) -> Result<()> {
        let deadline = Instant::now() + START;
        let client = client(&self.admin_kubeconfig()).await?;
        loop {
            let request = Request::get("/readyz").body(Vec::new())?;
            let Err(error) = client.request_text(request).await else {
                return Ok(());
            };
            if self.api_server.has_ended()? || Instant::now() > deadline {
                let log = fs::read_to_string(log(&self.directory)).unwrap_or_default();
                bail!("kube-apiserver is not ready: {error}\n{}", tail(&log));
            }
            sleep(POLL).await;
        }
    }
}

/// Writes what kube-apiserver reads, and the administrator's kubeconfig, into `directory`.
fn arguments(
    directory: &Path,
    address: SocketAddr,
    etcd_url: &str,
    flags: &[&str],
) -> Result<Vec<String>> {
    let authority = Authority::new()?;
    let server = authority.server(
        &["127.0.0.1", "::1", "localhost", "kubernetes"],
        Duration::ZERO,
    )?;
    let tokens = KeyPair::generate()?;
    let files = [
        ("server.crt", server.cert.pem()),
        ("server.key", server.signing_key.serialize_pem()),
        ("tokens.pub", tokens.public_key_pem()),
        ("tokens.key", tokens.serialize_pem()),
        ("audit.json", AUDIT_POLICY.to_owned()),
    ];
    for (name, content) in files {
        fs::write(directory.join(name), content)?;
    }
    let admin = authority.client("admin", "system:masters")?;
    let (certificate, key) = (admin.cert.pem(), admin.signing_key.serialize_pem());
    kubeconfig::write(
        directory,
        &format!("https://{address}"),
        Some(&authority.pem()),
        &Credentials::Certificate(&certificate, &key),
    )?;

    let file = |flag: &str, name: &str| format!("--{flag}={}", directory.join(name).display());
    let mut arguments = vec![
        format!("--etcd-servers={etcd_url}"),
        format!("--bind-address={}", address.ip()),
        format!("--secure-port={}", address.port()),
        file("tls-cert-file", "server.crt"),
        file("tls-private-key-file", "server.key"),
        file("client-ca-file", "ca.crt"),
        "--service-account-issuer=https://kubernetes.default.svc".to_owned(),
        file("service-account-key-file", "tokens.pub"),
        file("service-account-signing-key-file", "tokens.key"),
        "--service-cluster-ip-range=10.0.0.0/24".to_owned(),
        "--authorization-mode=Node,RBAC".to_owned(),
        "--enable-admission-plugins=NodeRestriction".to_owned(),
        // It waits for objects that only a controller makes.
        "--disable-admission-plugins=ServiceAccount".to_owned(),
        "--allow-privileged=true".to_owned(),
        file("audit-policy-file", "audit.json"),
        file("audit-log-path", "audit.log"),
    ];
    arguments.extend(flags.iter().map(ToString::to_string));
    Ok(arguments)
}

/// Of a port that was free just now.
fn free_address() -> Result<SocketAddr> {
    Ok(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?)
}

fn log(directory: &Path) -> PathBuf {
    directory.join("kube-apiserver.log")
}

/// The last lines, where a reason for an early end is.
fn tail(log: &str) -> String {
    let lines: Vec<&str> = log.lines().collect();
    lines[lines.len().saturating_sub(10)..].join("\n")
}
