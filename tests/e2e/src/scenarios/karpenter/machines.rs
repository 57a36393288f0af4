//! The machines that Karpenter launches, each as its kubelet and its agent. Their kubelets only write objects.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use serde_json::{Value, json};
use testkit::agent::{Agent, run_on, write_configuration};

use crate::habitat::{Habitat, RUN};
use crate::images;

const UNREGISTERED: &str = "karpenter.sh/unregistered:NoExecute";

pub(super) struct Machine {
    /// The name of the Node.
    pub(super) name: String,
    pub(super) agent: Agent,
    directory: PathBuf,
}

/// The kubelets of these claims create their Nodes, with these taints from `registerWithTaints`. They are not Ready.
pub(super) async fn register(habitat: &Habitat, claims: &[&Value], taints: &[&str]) -> Result<()> {
    let taints = [&[UNREGISTERED], taints].concat();
    let mut nodes = Vec::new();
    for claim in claims {
        let mut node = testkit::node(name(claim)?, &taints);
        node["metadata"]["labels"] = claim["metadata"]["labels"].clone();
        node["spec"]["providerID"] = claim["status"]["providerID"].clone();
        for field in ["capacity", "allocatable"] {
            node["status"][field] = claim["status"][field].clone();
        }
        node["status"]["conditions"] = json!([ready("False")]);
        nodes.push(node);
    }
    kubectl_with(habitat, &["create"], &nodes).await
}

/// Their kubelets say that they are Ready. The node lifecycle controller then removes its own taint.
pub(super) async fn become_ready(habitat: &Habitat, names: &[&str]) -> Result<()> {
    let node = |name: &&str| {
        json!({
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": name},
            "status": {"conditions": [ready("True")]},
        })
    };
    let nodes: Vec<Value> = names.iter().map(node).collect();
    let apply = [
        "apply",
        "--server-side",
        "--force-conflicts",
        "--subresource=status",
    ];
    kubectl_with(habitat, &apply, &nodes).await
}

fn ready(status: &str) -> Value {
    json!({"type": "Ready", "status": status, "reason": "KubeletStandIn"})
}

async fn kubectl_with(habitat: &Habitat, command: &[&str], objects: &[Value]) -> Result<()> {
    let file = format!("{RUN}/objects.json");
    let list = json!({"apiVersion": "v1", "kind": "List", "items": objects});
    fs::write(&file, list.to_string())?;
    let command = [command, &["--filename", &file]].concat();
    habitat.cluster.kubectl(&command).await?;
    Ok(())
}

fn name(claim: &Value) -> Result<&str> {
    let id = claim["status"]["providerID"].as_str();
    id.and_then(|id| id.strip_prefix("kwok://"))
        .context("a provider id")
}

impl Machine {
    /// Starts an agent on the Node, with a rule for each of these taints that waits for a file.
    pub(super) async fn start_agent(
        habitat: &Habitat,
        name: &str,
        taints: &[&str],
    ) -> Result<Self> {
        let directory = Path::new(RUN).join(name);
        fs::create_dir(&directory)?;
        let mut rules = String::new();
        for taint in taints {
            let (key, rule) = (key(taint), rule(taint));
            let file = directory.join(rule);
            writeln!(
                rules,
                "- name: {rule}\n  taint: {{key: {key}}}\n  gates:\n  - {{name: file, file: {{path: {}}}}}",
                file.display()
            )?;
        }
        let config = directory.join("config.yaml");
        write_configuration(&config, &rules)?;
        let kubeconfig = habitat.cluster.agent_kubeconfig(&directory, name).await?;
        let run = [
            &run_on(name, &config, &kubeconfig)[..],
            &["--listen", "off"],
        ]
        .concat();
        let agent = Agent::start(
            &images::binary()?,
            &run,
            &[("UNTAINT_NO_POLICY_CHECK", "true")],
        )?;
        let name = name.to_owned();
        Ok(Self {
            name,
            agent,
            directory,
        })
    }

    /// Opens the gate of the rule for this taint.
    pub(super) fn open(&self, taint: &str) -> Result<()> {
        Ok(fs::write(self.directory.join(rule(taint)), "")?)
    }
}

/// The key of a taint.
pub(super) fn key(taint: &str) -> &str {
    taint.split([':', '=']).next().unwrap_or_default()
}

/// The first part of its key.
fn rule(taint: &str) -> &str {
    key(taint).split('.').next().unwrap_or_default()
}
