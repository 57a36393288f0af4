//! etcd and kube-apiserver.

use std::fs;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Result, bail, ensure};
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
/// The interval at which the server is asked whether it is ready.
const POLL: Duration = Duration::from_millis(50);

/// The address and the port of the Service `kubernetes`: the first address of the range of Services.
pub const SERVICE: (Ipv4Addr, u16) = (Ipv4Addr::new(10, 0, 0, 1), 443);

/// Directories of etcd's data.
const DATA: &str = "etcd";
const BACKUP: &str = "etcd-backup";

/// Logs every request at level Metadata. A watch is logged at its start and at its end.
const AUDIT_POLICY: &str = r#"{"apiVersion": "audit.k8s.io/v1", "kind": "Policy",
"omitStages": ["RequestReceived"], "rules": [{"level": "Metadata"}]}"#;

/// The two processes and their files.
pub(super) struct ControlPlane {
    // Dropped in this order.
    api_server: Program,
    etcd: Program,
    /// Removes the directory when it ends.
    _keeper: Process,
    directory: PathBuf,
    etcd_url: String,
    address: SocketAddr,
    authority: Authority,
}

/// A program that can be started again.
struct Program {
    path: PathBuf,
    arguments: Vec<String>,
    log: PathBuf,
    process: Process,
}

impl Program {
    fn start(path: PathBuf, arguments: Vec<String>, log: PathBuf) -> Result<Self> {
        let process = Process::start(&path, &arguments, &log, None)?;
        Ok(Self {
            path,
            arguments,
            log,
            process,
        })
    }

    fn restart(&mut self) -> Result<()> {
        self.process.kill();
        self.process = Process::start(&self.path, &self.arguments, &self.log, None)?;
        Ok(())
    }
}

impl ControlPlane {
    /// `node_network` is the address at which nodes reach the server. Without it, the server has a free loopback port.
    ///
    /// Fails, for example, if another program has taken a port.
    pub(super) async fn start(
        programs: &Path,
        flags: &[&str],
        node_network: Option<Ipv4Addr>,
    ) -> Result<Self> {
        let directory = TempDir::with_prefix("untaint-cluster-")?;
        let (etcd_url, peer_url) = (
            format!("http://{}", free_address()?),
            format!("http://{}", free_address()?),
        );
        let address = match node_network {
            Some(address) => (address, SERVICE.1).into(),
            None => free_address()?,
        };
        let authority = Authority::new()?;
        let mut arguments = arguments(directory.path(), &authority, address, &etcd_url)?;
        arguments.extend(match node_network {
            Some(address) => vec![
                "--bind-address=0.0.0.0".to_owned(),
                format!("--advertise-address={address}"),
            ],
            // The plugin waits for objects that only a controller creates.
            None => vec!["--disable-admission-plugins=ServiceAccount".to_owned()],
        });
        arguments.extend(flags.iter().map(ToString::to_string));

        // From here on, another process removes the directory, even if this process is killed.
        let directory = directory.keep();
        let forever = Path::new("sleep");
        let log = directory.join("keeper.log");
        let keeper = Process::start(forever, &["infinity"], &log, Some(&directory))?;
        let etcd = Program::start(
            programs.join("etcd"),
            vec![
                format!("--data-dir={}", directory.join(DATA).display()),
                format!("--listen-client-urls={etcd_url}"),
                format!("--advertise-client-urls={etcd_url}"),
                format!("--listen-peer-urls={peer_url}"),
                format!("--initial-advertise-peer-urls={peer_url}"),
                format!("--initial-cluster=default={peer_url}"),
                "--unsafe-no-fsync".to_owned(),
            ],
            directory.join("etcd.log"),
        )?;
        let log = directory.join("kube-apiserver.log");
        let api_server = Program::start(programs.join("kube-apiserver"), arguments, log)?;
        let mut control_plane = Self {
            api_server,
            etcd,
            _keeper: keeper,
            directory,
            etcd_url,
            address,
            authority,
        };
        control_plane.ready().await?;
        Ok(control_plane)
    }

    pub(super) fn stop_api_server(&mut self) {
        self.api_server.process.kill();
    }

    pub(super) async fn start_api_server(&mut self) -> Result<()> {
        self.api_server.restart()?;
        self.ready().await
    }

    /// Copies the data of etcd. kube-apiserver must be stopped.
    pub(super) fn back_up(&mut self) -> Result<()> {
        self.exchange_data(DATA, BACKUP)
    }

    /// Restores the copy of the data. kube-apiserver must be stopped.
    pub(super) fn restore(&mut self) -> Result<()> {
        self.exchange_data(BACKUP, DATA)
    }

    /// A copy of a database that is in use can be inconsistent.
    fn exchange_data(&mut self, from: &str, to: &str) -> Result<()> {
        self.etcd.process.kill();
        let to = self.directory.join(to);
        if to.exists() {
            fs::remove_dir_all(&to)?;
        }
        let copied = Command::new("cp")
            .arg("-R")
            .args([&self.directory.join(from), &to])
            .status()?;
        ensure!(copied.success(), "cp: {copied}");
        self.etcd.restart()
    }

    /// The directory of the logs and of all other files.
    pub(super) fn directory(&self) -> &Path {
        &self.directory
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

    /// The authority that both sides trust.
    pub(super) fn authority(&self) -> &Authority {
        &self.authority
    }

    /// The key that signs the tokens of accounts.
    pub(super) fn token_key(&self) -> PathBuf {
        self.directory.join("tokens.key")
    }

    pub(super) fn audit_log(&self) -> PathBuf {
        self.directory.join("audit.log")
    }

    /// The cache of kubectl. It must end with the cluster, so it is not in the home directory.
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
            if self.api_server.process.has_ended()? || Instant::now() > deadline {
                let log = fs::read_to_string(&self.api_server.log).unwrap_or_default();
                bail!("kube-apiserver is not ready: {error}\n{}", tail(&log));
            }
            sleep(POLL).await;
        }
    }
}

/// Writes the files of kube-apiserver, and the administrator's kubeconfig, into `directory`.
fn arguments(
    directory: &Path,
    authority: &Authority,
    address: SocketAddr,
    etcd_url: &str,
) -> Result<Vec<String>> {
    let (service, own) = (SERVICE.0.to_string(), address.ip().to_string());
    let mut names = vec!["127.0.0.1", "::1", "localhost", "kubernetes", &service];
    if !address.ip().is_loopback() {
        names.push(&own);
    }
    let server = authority.server(&names, Duration::ZERO)?;
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
    Ok(vec![
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
        "--allow-privileged=true".to_owned(),
        file("audit-policy-file", "audit.json"),
        file("audit-log-path", "audit.log"),
    ])
}

/// An address with a port that was free a moment ago.
fn free_address() -> Result<SocketAddr> {
    Ok(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?)
}

/// The last lines of a log, which have the reason for an early end.
fn tail(log: &str) -> String {
    let lines: Vec<&str> = log.lines().collect();
    lines[lines.len().saturating_sub(10)..].join("\n")
}
