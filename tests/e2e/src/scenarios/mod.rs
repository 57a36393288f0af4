//! The scenarios: one file each, in the order in which they run.

mod chart;
mod cni_directories;
mod control;
mod csi;
mod devices;
mod flannel;
mod forms;
mod frozen;
mod karpenter;
mod kube_router;
mod no_execute;
mod node_anew;
mod outage;
mod reboot;
mod reconfigure;
mod restarts;
mod stolen_token;
mod story;

use std::io::Read as _;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context as _, Result};
use futures_util::future::LocalBoxFuture;
use tokio::time::timeout;

use crate::habitat::{self, Habitat};

pub(crate) const COMMAND: &str = "scenario";

/// The time that a scenario may take, which no good one needs.
const LIMIT: Duration = Duration::from_mins(5);

pub(crate) struct Scenario {
    /// For `make e2e SCENARIO=…`.
    pub(crate) name: &'static str,
    /// A sentence.
    pub(crate) title: &'static str,
    /// The programs that run beside its nodes: directories of `tests/cluster`.
    pub(crate) parts: &'static [&'static str],
    /// The directories of `tests/cluster` with the programs of more images that its node has.
    pub(crate) images: &'static [&'static str],
    run: for<'a> fn(&'a mut Habitat) -> LocalBoxFuture<'a, Result<()>>,
}

pub(crate) const ALL: [Scenario; 19] = [
    Scenario {
        name: "story",
        title: "a node joins with its taint, and gets ordinary pods when its network works",
        parts: &[],
        images: &[],
        run: |habitat| Box::pin(story::run(habitat)),
    },
    Scenario {
        name: "control",
        title: "without the gate for its health, a pod runs before the network works, and fails",
        parts: &[],
        images: &[],
        run: |habitat| Box::pin(control::run(habitat)),
    },
    Scenario {
        name: "forms",
        title: "a sidecar, an init container and a hook, as `untaint manifests` writes them",
        parts: &[],
        images: &[],
        run: |habitat| Box::pin(forms::run(habitat)),
    },
    Scenario {
        name: "chart",
        title: "the Helm chart is installed, and the taint goes",
        parts: &["helm"],
        images: &["flannel", "flannel-plugin"],
        run: |habitat| Box::pin(chart::run(habitat)),
    },
    Scenario {
        name: "reboot",
        title: "a node is switched off and on, without and with retaint",
        parts: &[],
        images: &[],
        run: |habitat| Box::pin(reboot::run(habitat)),
    },
    Scenario {
        name: "node-anew",
        title: "the Node is deleted, and the kubelet makes another of the same name",
        parts: &[],
        images: &[],
        run: |habitat| Box::pin(node_anew::run(habitat)),
    },
    Scenario {
        name: "restarts",
        title: "the kubelet, containerd and untaint are killed at each stage on the way to a removal",
        parts: &[],
        images: &[],
        run: |habitat| Box::pin(restarts::run(habitat)),
    },
    Scenario {
        name: "outage",
        title: "the API server is killed at each stage, and is away while gates open",
        parts: &[],
        images: &[],
        run: |habitat| Box::pin(outage::run(habitat)),
    },
    Scenario {
        name: "frozen",
        title: "the kubelet, containerd, the API server and etcd stand still, and go on",
        parts: &[],
        images: &[],
        run: |habitat| Box::pin(frozen::run(habitat)),
    },
    Scenario {
        name: "reconfigure",
        title: "a roll-out at each stage, another ConfigMap, and good and bad changes of it in place",
        parts: &[],
        images: &[],
        run: |habitat| Box::pin(reconfigure::run(habitat)),
    },
    Scenario {
        name: "cni-directories",
        title: "the directories of the CNI's configuration are removed and made again",
        parts: &[],
        images: &[],
        run: |habitat| Box::pin(cni_directories::run(habitat)),
    },
    Scenario {
        name: "stolen-token",
        title: "the token of untaint's pod is used from elsewhere",
        parts: &[],
        images: &[],
        run: |habitat| Box::pin(stolen_token::run(habitat)),
    },
    Scenario {
        name: "flannel",
        title: "Flannel with its own manifest, and the example for it",
        parts: &[],
        images: &["flannel", "flannel-plugin"],
        run: |habitat| Box::pin(flannel::run(habitat)),
    },
    Scenario {
        name: "no-execute",
        title: "a taint with the effect NoExecute keeps Flannel away, until its DaemonSet tolerates it",
        parts: &[],
        images: &["flannel", "flannel-plugin"],
        run: |habitat| Box::pin(no_execute::run(habitat)),
    },
    Scenario {
        name: "kube-router",
        title: "kube-router with its own manifest, whose configuration is complete only after the Node is Ready",
        parts: &[],
        images: &["kube-router"],
        run: |habitat| Box::pin(kube_router::run(habitat)),
    },
    Scenario {
        name: "csi",
        title: "a CSI driver registers with the kubelet, which restarts, and is deleted and deployed again",
        parts: &[],
        images: &["plugins"],
        run: |habitat| Box::pin(csi::run(habitat)),
    },
    Scenario {
        name: "devices",
        title: "a device plugin reports its devices one by one, and again after the kubelet has restarted",
        parts: &[],
        images: &["plugins"],
        run: |habitat| Box::pin(devices::run(habitat)),
    },
    Scenario {
        name: "karpenter-nodes",
        title: "Karpenter starts twenty nodes at once, and waits for their start-up taints",
        parts: &["karpenter"],
        images: &[],
        run: |habitat| Box::pin(karpenter::nodes::run(habitat)),
    },
    Scenario {
        name: "karpenter-pools",
        title: "a taint under startupTaints of a NodePool, and by mistake under taints",
        parts: &["karpenter"],
        images: &[],
        run: |habitat| Box::pin(karpenter::pools::run(habitat)),
    },
];

/// The scenarios of these names, or all.
pub(crate) fn chosen(names: &[&str]) -> Vec<&'static Scenario> {
    let chosen = ALL.iter();
    chosen
        .filter(|scenario| names.is_empty() || names.contains(&scenario.name))
        .collect()
}

/// Runs one scenario as the first process of its namespaces.
pub(crate) fn main(name: &str, logs: &Path) -> Result<ExitCode> {
    // The supervisor holds the other end of standard input, so this process, and all others with it, end with it.
    std::thread::spawn(|| {
        let _ = std::io::stdin().read_to_end(&mut Vec::new());
        std::process::exit(1);
    });
    let scenario = ALL.iter().find(|scenario| scenario.name == name);
    let scenario = scenario.context("a scenario")?;
    habitat::isolate(logs)?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()?;
    let good = runtime.block_on(run(scenario, logs))?;
    // Dropping the runtime or the habitat would wait for processes that end anyway.
    std::process::exit(i32::from(!good));
}

async fn run(scenario: &Scenario, logs: &Path) -> Result<bool> {
    let mut habitat = Habitat::start(logs, scenario.images).await?;
    let outcome = timeout(LIMIT, (scenario.run)(&mut habitat)).await;
    match outcome.context("the scenario takes too long") {
        Ok(Ok(())) => {}
        Ok(Err(error)) | Err(error) => habitat.expect(&format!("{error:#}"), false),
    }
    let good = habitat.checks.all_good();
    if !good {
        habitat.save_logs().await;
    }
    std::mem::forget(habitat);
    Ok(good)
}
