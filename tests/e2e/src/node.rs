//! A node: a kubelet and a container runtime in namespaces of their own for mounts, processes and the time of the boot.

use std::fs::{self, File};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use anyhow::{Context as _, Result};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::cgroups;
use crate::commands::{line, run};
use crate::eventually::eventually;
use crate::habitat::{ADDRESS, Habitat, PARTS, RUN};
use crate::images::{self, SANDBOX};
use crate::node_init::{self, SOCKET};
use crate::processes::{process, running};

/// The name of the Node.
pub(crate) const NAME: &str = "node-1";

pub(crate) struct Node {
    disk: PathBuf,
    running: Option<Running>,
}

/// A node that is switched on.
struct Running {
    /// Ends together with all processes of the node.
    outer: Child,
    /// The first process of the node.
    init: Pid,
}

impl Node {
    /// Makes the disk of a node that was never switched on.
    pub(crate) fn new(habitat: &Habitat, taints: &[&str]) -> Result<Self> {
        let disk = Path::new(RUN).join("node");
        for name in [
            "upper",
            "work",
            "root",
            "containerd",
            "kubelet",
            "config",
            "parts",
            "images",
        ] {
            fs::create_dir_all(disk.join(name))?;
        }
        for part in PARTS {
            symlink(
                habitat.programs(part).canonicalize()?,
                disk.join("parts").join(part),
            )?;
        }
        for image in images::COMMON.iter().chain(habitat.images) {
            let archive = format!("{image}.tar");
            symlink(
                habitat.result("images").join(&archive),
                disk.join("images").join(archive),
            )?;
        }
        let config = disk.join("config");
        habitat.cluster.kubelet_kubeconfig(&config, NAME)?;
        fs::write(config.join("kubelet.yaml"), kubelet(taints).to_string())?;
        fs::write(config.join("containerd.toml"), containerd())?;
        let running = None;
        Ok(Self { disk, running })
    }

    /// Switches it on. Returns when its first process runs; containerd and the kubelet follow.
    pub(crate) async fn up(&mut self) -> Result<()> {
        // The boot is now: in a time namespace with this offset, /proc/stat says so.
        let uptime = fs::read_to_string("/proc/uptime")?;
        let uptime = uptime.split('.').next().context("the uptime")?;
        let log = File::options()
            .create(true)
            .append(true)
            .open(self.disk.join("init.log"))?;
        let outer = Command::new("unshare")
            .args(["--mount", "--pid", "--fork", "--kill-child", "--mount-proc"])
            .args(["--propagation", "private", "--time", "--boottime"])
            .args([&format!("-{uptime}"), "--"])
            .arg(std::env::current_exe()?)
            .arg(node_init::COMMAND)
            .arg(&self.disk)
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log)
            .spawn()?;
        let id = outer.id();
        let children = format!("/proc/{id}/task/{id}/children");
        let init = eventually("the first process of the node", || {
            let children = fs::read_to_string(&children).ok()?;
            Pid::from_raw(children.split_whitespace().next()?.parse().ok()?)
        });
        let init = init.await?;
        self.running = Some(Running { outer, init });
        // Before that, the root of the process is still that of the machine.
        self.wait_for_path(SOCKET).await?;
        Ok(())
    }

    /// Switches it off: all processes end at once, and only the disk stays.
    pub(crate) fn down(&mut self) -> Result<()> {
        let mut running = self.running.take().context("the node is off")?;
        kill_process(running.init, Signal::KILL)?;
        running.outer.wait()?;
        cgroups::empty()?;
        // The network namespaces of the pods are gone, and their devices with them. Bridges stay.
        for link in line("ip -brief link")?.lines() {
            let name = link.split(['@', ' ']).next().unwrap_or_default();
            if !["lo", "eth0", "wire"].contains(&name) {
                run("ip", &["link", "delete", name])?;
            }
        }
        Ok(())
    }

    /// Runs a program in it, and returns its standard output.
    pub(crate) fn run(&self, arguments: &[&str]) -> Result<String> {
        let init = self.running.as_ref().context("the node is off")?.init;
        let target = init.as_raw_nonzero().to_string();
        let enter = ["--target", &target, "--mount", "--pid", "--time", "--"];
        run("nsenter", &[&enter[..], arguments].concat())
    }

    /// Kills `kubelet`, `containerd` or `untaint`, and returns when it has been started again.
    pub(crate) async fn restart(&self, program: &str) -> Result<()> {
        let old = running(program)?;
        kill_process(old, Signal::KILL)?;
        let another = || process(program).filter(|new| *new != old);
        eventually(&format!("another {program}"), another).await?;
        Ok(())
    }

    /// Where a file of the node is for this process.
    pub(crate) fn path(&self, path: &str) -> Result<PathBuf> {
        let init = self.running.as_ref().context("the node is off")?.init;
        Ok(format!("/proc/{}/root{path}", init.as_raw_nonzero()).into())
    }

    /// Waits until a file or a directory of the node exists.
    pub(crate) async fn wait_for_path(&self, path: &str) -> Result<()> {
        let place = self.path(path)?;
        eventually(path, || place.exists().then_some(())).await
    }

    /// Waits until the log of a container has `text` at least `number` times. `container` is `NAMESPACE_POD-*/NAME`, and `*`
    /// stands for any end.
    pub(crate) async fn wait_for_log(
        &self,
        container: &str,
        text: &str,
        number: usize,
    ) -> Result<()> {
        let (pod, name) = container.split_once("*/").context("a pod and a name")?;
        let pods = self.path("/var/log/pods")?;
        eventually(
            &format!("{number} times {text:?} in the log of {container}"),
            || (occurrences(&pods, pod, name, text) >= number).then_some(()),
        )
        .await
    }

    /// Creates a file of the node at once, with all its content.
    pub(crate) fn write(&self, path: &str, content: &str) -> Result<()> {
        let place = self.path(path)?;
        fs::create_dir_all(place.parent().context("a directory")?)?;
        let draft = place.with_extension("draft");
        fs::write(&draft, content)?;
        fs::rename(draft, place)?;
        Ok(())
    }
}

/// How often `text` is in the logs of the container `name` of the pods whose directories start with `pod`.
fn occurrences(pods: &Path, pod: &str, name: &str, text: &str) -> usize {
    let entries = |path: &Path| fs::read_dir(path).into_iter().flatten().flatten();
    entries(pods)
        .filter(|entry| entry.file_name().to_string_lossy().starts_with(pod))
        .flat_map(|entry| entries(&entry.path().join(name)))
        // A link leads to another place outside of the node.
        .filter(|log| log.file_type().is_ok_and(|kind| kind.is_file()))
        .filter_map(|log| fs::read_to_string(log.path()).ok())
        .map(|log| log.matches(text).count())
        .sum()
}

fn kubelet(taints: &[&str]) -> Value {
    json!({
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        // The API server has no credentials for kubelets.
        "authentication": {"anonymous": {"enabled": true}, "webhook": {"enabled": false}},
        "authorization": {"mode": "AlwaysAllow"},
        "cgroupDriver": "cgroupfs",
        "cgroupRoot": format!("/{}", cgroups::ROOT),
        // The scenarios kill untaint more often than a node does.
        "crashLoopBackOff": {"maxContainerRestartPeriod": "1s"},
        "containerRuntimeEndpoint": format!("unix://{SOCKET}"),
        // A limit on all pods together would be a limit of this machine.
        "enforceNodeAllocatable": [],
        "evictionHard": {"memory.available": "100Mi", "nodefs.available": "1%", "imagefs.available": "1%"},
        "failCgroupV1": false,
        "failSwapOn": false,
        "imageGCHighThresholdPercent": 99,
        "imageGCLowThresholdPercent": 98,
        // The scenarios have no Services except that of the API server.
        "makeIPTablesUtilChains": false,
        "nodeStatusUpdateFrequency": "2s",
        "registerWithTaints": testkit::node(NAME, taints)["spec"]["taints"],
        "syncFrequency": "5s",
    })
}

fn containerd() -> String {
    format!(
        r#"version = 3
root = "/var/lib/containerd"
state = "/run/containerd"
[grpc]
address = "{SOCKET}"
[plugins."io.containerd.cri.v1.runtime"]
# Lowering the score needs a right that root may lack in a container.
restrict_oom_score_adj = true
[plugins."io.containerd.cri.v1.runtime".cni]
bin_dirs = ["/opt/cni/bin", "/usr/lib/cni"]
conf_dir = "/etc/cni/net.d"
[plugins."io.containerd.cri.v1.images".pinned_images]
sandbox = "{SANDBOX}"
"#
    )
}

/// The arguments of the kubelet. `config` is the directory that [`Node::new`] fills.
pub(crate) fn kubelet_arguments(config: &Path) -> Vec<String> {
    let file = |flag: &str, name: &str| format!("--{flag}={}", config.join(name).display());
    vec![
        file("config", "kubelet.yaml"),
        file("kubeconfig", "kubeconfig"),
        format!("--hostname-override={NAME}"),
        format!("--node-ip={ADDRESS}"),
    ]
}
