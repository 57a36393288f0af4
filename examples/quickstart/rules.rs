//! The three rules, and the expected result for their taints.

use std::path::Path;
use std::time::Duration;

use anyhow::Result;
use untaint::config::{self, Configuration};

use crate::verdict::{Expected, ExpectedRule, Fate, Gate};

/// The name of the agent's Node.
pub(crate) const NODE: &str = "worker-1";

/// The rule for the CNI plugin: its configuration, and the health endpoint of its agent.
pub(crate) const NETWORK: &str = "network";
const NETWORK_KEY: &str = "node.cilium.io/agent-not-ready";
const NETWORK_TAINT: &str = "node.cilium.io/agent-not-ready:NoExecute";
pub(crate) const CONFLIST: Gate = Gate {
    rule: NETWORK,
    name: "conflist",
};
pub(crate) const AGENT: Gate = Gate {
    rule: NETWORK,
    name: "agent",
};

/// The rule for a CSI driver.
pub(crate) const STORAGE: &str = "storage";
const STORAGE_KEY: &str = "ebs.csi.aws.com/agent-not-ready";
const STORAGE_TAINT: &str = "ebs.csi.aws.com/agent-not-ready:NoExecute";
pub(crate) const CSI_DRIVER: &str = "ebs.csi.aws.com";
pub(crate) const DRIVER: Gate = Gate {
    rule: STORAGE,
    name: "driver",
};

/// The rule for GPUs, which never appear.
pub(crate) const GPU: &str = "gpu";
const GPU_KEY: &str = "startup-taint.cluster-autoscaler.kubernetes.io/nvidia-not-ready";
const GPU_TAINT: &str =
    "startup-taint.cluster-autoscaler.kubernetes.io/nvidia-not-ready:NoSchedule";
pub(crate) const GPUS: Gate = Gate {
    rule: GPU,
    name: "gpus",
};
const GPU_DEADLINE: Duration = Duration::from_secs(3);

/// The taints of the node controller and of the cloud provider.
const FOREIGN: [&str; 2] = [
    "node.kubernetes.io/not-ready:NoSchedule",
    "node.cloudprovider.kubernetes.io/uninitialized=true:NoSchedule",
];

/// All taints of the new Node. The taint of the network is the first.
pub(crate) const TAINTS: [&str; 5] = [
    NETWORK_TAINT,
    FOREIGN[0],
    STORAGE_TAINT,
    FOREIGN[1],
    GPU_TAINT,
];

/// The expected result of [`story::play`](crate::story::play).
pub(crate) const EXPECTED: Expected = Expected {
    rules: &[
        ExpectedRule {
            name: NETWORK,
            taint: NETWORK_TAINT,
            gates: &[CONFLIST, AGENT],
            fate: Fate::Removed { times: 2 },
        },
        ExpectedRule {
            name: STORAGE,
            taint: STORAGE_TAINT,
            gates: &[DRIVER],
            fate: Fate::Removed { times: 1 },
        },
        ExpectedRule {
            name: GPU,
            taint: GPU_TAINT,
            gates: &[GPUS],
            fate: Fate::Kept {
                deadline: GPU_DEADLINE,
            },
        },
    ],
    foreign: &FOREIGN,
    watched: &["/api/v1/nodes", "/apis/storage.k8s.io/v1/csinodes"],
    patched: "/api/v1/nodes/worker-1",
};

/// The rule for this taint, or for a taint with this key.
pub(crate) fn rule_of(taint: &str) -> Option<String> {
    let key = |taint: &str| taint.split(['=', ':']).next().map(str::to_owned);
    let mut rules = EXPECTED.rules.iter();
    let rule = rules.find(|rule| key(rule.taint) == key(taint))?;
    Some(rule.name.into())
}

/// The rules of examples/cilium.yaml, ebs-csi.yaml and nvidia.yaml in a shorter form, and with a short deadline.
pub(crate) fn written(net_d: &Path, health_port: u16) -> String {
    let (dir, deadline) = (net_d.display(), GPU_DEADLINE.as_secs());
    let [conflist, agent, driver, gpus] = [CONFLIST, AGENT, DRIVER, GPUS].map(|gate| gate.name);
    format!(
        "rules:\n\
         - name: {NETWORK}\n\
         \x20 taint: {{key: {NETWORK_KEY}}}\n\
         \x20 gates:\n\
         \x20 - name: {conflist}\n\
         \x20   cniConfig: {{dir: {dir}, network: cilium, plugins: [cilium-cni]}}\n\
         \x20 - name: {agent}\n\
         \x20   httpGet: {{port: {health_port}, path: /healthz}}\n\
         - name: {STORAGE}\n\
         \x20 taint: {{key: {STORAGE_KEY}}}\n\
         \x20 gates:\n\
         \x20 - name: {driver}\n\
         \x20   csiDriver: {{name: {CSI_DRIVER}, allocatable: true}}\n\
         - name: {GPU}\n\
         \x20 taint: {{key: {GPU_KEY}}}\n\
         \x20 gates:\n\
         \x20 - name: {gpus}\n\
         \x20   allocatable: {{resource: nvidia.com/gpu}}\n\
         \x20 deadline: {{after: {deadline}s, action: Keep}}\n"
    )
}

pub(crate) fn parse(rules: &str) -> Result<Configuration> {
    let (version, kind) = (config::API_VERSION, config::KIND);
    Ok(config::parse(&format!(
        "apiVersion: {version}\nkind: {kind}\n{rules}"
    ))?)
}
