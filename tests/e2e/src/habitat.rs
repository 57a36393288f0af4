//! A network, a file system that cannot be written, and a control plane: all that is around a node.

use std::fs;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result};
use testkit::cluster::{Cluster, Controllers, SERVICE};

use crate::checks::Checks;
use crate::commands::{line, run};
use crate::images;
use crate::node::Node;
use crate::timeline::Timeline;

/// The directory of all files of a scenario, in memory.
pub(crate) const RUN: &str = "/run/untaint-e2e";
/// The programs: directories of `tests/cluster`.
pub(crate) const PARTS: [&str; 2] = ["node", "containerd"];
/// The directory of the links to the programs, beside those of the logs.
pub(crate) const PROGRAMS: &str = "programs";
/// The address of the node and of the API server, for those who do not use the Service.
pub(crate) const ADDRESS: Ipv4Addr = Ipv4Addr::new(10, 99, 0, 1);

pub(crate) struct Habitat {
    pub(crate) cluster: Cluster,
    pub(crate) timeline: Arc<Timeline>,
    pub(crate) checks: Checks,
    /// Those of the scenario.
    pub(crate) images: &'static [&'static str],
    _controllers: Controllers,
    logs: PathBuf,
}

/// Takes the machine out of reach. Only the directory of the logs can still be written.
pub(crate) fn isolate(logs: &Path) -> Result<()> {
    let logs = logs.display();
    line(&format!("mount --bind {logs} {logs}"))?;
    line("mount -o remount,bind,ro /")?;
    line("mount -t tmpfs -o mode=755 untaint-e2e /run")?;
    fs::create_dir(RUN)?;

    line("ip link set lo up")?;
    // In place of a network card. Its other end leads nowhere.
    line("ip link add eth0 type veth peer name wire")?;
    line(&format!("ip address add {ADDRESS}/24 dev eth0"))?;
    line("ip link set wire up")?;
    line("ip link set eth0 up")?;
    line("ip route add default via 10.99.0.254")?;
    // The API server listens on the address of its Service, in place of kube-proxy.
    line(&format!("ip address add {}/32 dev lo", SERVICE.0))?;
    fs::write("/proc/sys/net/ipv4/ip_forward", "1")?;
    Ok(())
}

impl Habitat {
    /// Starts a control plane. `logs` is the directory of the logs, beside the parts and the images.
    pub(crate) async fn start(logs: &Path, images: &'static [&'static str]) -> Result<Self> {
        let results = logs.parent().context("a parent")?;
        let cluster = Cluster::start_for_nodes(ADDRESS).await?;
        let rest = async {
            let controllers = cluster.start_controllers(&results.join(PROGRAMS).join("node"))?;
            // Pods need this account, which the controller manager creates.
            let account = [
                "wait",
                "--for=create",
                "serviceaccount/default",
                "--timeout=60s",
            ];
            cluster.kubectl(&account).await?;
            anyhow::Ok((controllers, Timeline::follow(&cluster.client().await?)))
        };
        let rest = rest.await;
        if rest.is_err() {
            // The cluster takes its logs with it.
            save_logs(&cluster, logs).await;
        }
        let (controllers, timeline) = rest?;
        Ok(Self {
            cluster,
            timeline,
            checks: Checks::default(),
            images,
            _controllers: controllers,
            logs: logs.to_owned(),
        })
    }

    /// The directory of the programs of a part.
    pub(crate) fn programs(&self, part: &str) -> PathBuf {
        self.result(PROGRAMS).join(part)
    }

    /// The directory of the archives of images, or of other results.
    pub(crate) fn result(&self, name: &str) -> PathBuf {
        self.logs.with_file_name(name)
    }

    /// A node that is switched off. When it is first switched on, its kubelet registers it with these taints.
    pub(crate) fn node(&self, taints: &[&str]) -> Result<Node> {
        Node::new(self, taints)
    }

    /// Runs `untaint manifests` for this configuration with these arguments, and returns what it writes.
    #[expect(clippy::unused_self, reason = "the program runs in the habitat")]
    pub(crate) fn manifests(&self, configuration: &str, arguments: &[&str]) -> Result<String> {
        let file = write_configuration(configuration)?;
        let fixed = ["manifests", "--config", &file, "--image", images::UNTAINT];
        run(&images::binary()?, &[&fixed[..], arguments].concat())
    }

    /// Runs `untaint config validate` for this configuration, and returns its warnings.
    #[expect(clippy::unused_self, reason = "the program runs in the habitat")]
    pub(crate) fn validate(&self, configuration: &str) -> Result<String> {
        let file = write_configuration(configuration)?;
        let output = Command::new(images::binary()?)
            .args(["config", "validate", &file])
            .output()?;
        Ok(String::from_utf8_lossy(&output.stderr).into_owned())
    }

    /// Applies the manifests that untaint writes for this configuration, as they are.
    pub(crate) async fn install(&self, configuration: &str, arguments: &[&str]) -> Result<()> {
        let manifests = self.manifests(configuration, arguments)?;
        self.cluster.apply(&manifests).await
    }

    /// Prints a named assertion.
    pub(crate) fn expect(&self, sentence: &str, holds: bool) {
        self.checks.expect(sentence, holds);
    }

    /// Prints a named assertion: whether this wait succeeds. If it does not, its error says what was missing.
    pub(crate) async fn comes_true<T>(
        &self,
        sentence: &str,
        wait: impl Future<Output = Result<T>>,
    ) -> Result<T> {
        let outcome = wait.await;
        self.expect(sentence, outcome.is_ok());
        outcome
    }

    /// Prints a measured time.
    pub(crate) fn measured(&self, what: &str, time: Duration) {
        self.timeline
            .say(&format!("{what}: {:.1} ms", time.as_secs_f64() * 1e3));
    }

    /// Copies all logs to the directory of the logs.
    pub(crate) async fn save_logs(&self) {
        save_logs(&self.cluster, &self.logs).await;
    }
}

async fn save_logs(cluster: &Cluster, to: &Path) {
    if let Err(error) = copy_logs(cluster, to).await {
        println!("the logs are not complete: {error:#}");
    }
}

async fn copy_logs(cluster: &Cluster, to: &Path) -> Result<()> {
    for entry in fs::read_dir(cluster.directory())? {
        let path = entry?.path();
        if path.extension().is_some_and(|end| end == "log") {
            fs::copy(&path, to.join(path.file_name().unwrap_or_default()))?;
        }
    }
    let disk = format!("{RUN}/node/upper");
    for part in ["var/log", "etc/cni"] {
        let from = format!("{disk}/{part}");
        if Path::new(&from).exists() {
            line(&format!("cp -R {from} {}/", to.display()))?;
        }
    }
    let kinds = "nodes,pods,daemonsets,events,configmaps";
    let objects = ["get", kinds, "--all-namespaces", "--output=yaml"];
    fs::write(to.join("objects.yaml"), cluster.kubectl(&objects).await?)?;
    Ok(())
}

fn write_configuration(configuration: &str) -> Result<String> {
    let file = format!("{RUN}/config.yaml");
    fs::write(&file, configuration)?;
    Ok(file)
}
