//! The subject of a measurement: an agent on a Node that has the taint from the start.

use std::fs;
use std::path::Path;

use anyhow::Result;
use jiff::Timestamp;
use tempfile::TempDir;
use testkit::CONFLIST;
use testkit::agent::{Agent, run_on, write_configuration};
use testkit::cluster::{AuditEntry, Cluster};

use crate::TAINT;

const UNFINISHED: &str = "net.d/10-demo.conflist.tmp";
const FINISHED: &str = "net.d/10-demo.conflist";

/// The gate of the rule. Every other field has its default.
pub(crate) enum Gate {
    Conflist,
    /// Of an endpoint at this port of 127.0.0.1.
    Http(u16),
}

impl Gate {
    fn yaml(&self, directory: &Path) -> String {
        match self {
            Self::Conflist => {
                let net_d = directory.join("net.d");
                format!(
                    "  - {{name: conflist, cniConfig: {{dir: {}}}}}\n",
                    net_d.display()
                )
            }
            Self::Http(port) => {
                format!("  - {{name: endpoint, httpGet: {{port: {port}, path: /healthz}}}}\n")
            }
        }
    }
}

/// The agent is killed when this is dropped.
pub(crate) struct Subject<'a> {
    cluster: &'a Cluster,
    directory: TempDir,
    pub(crate) node: String,
    pub(crate) started: Timestamp,
    pub(crate) agent: Agent,
}

impl<'a> Subject<'a> {
    /// Returns when the agent has found every gate closed.
    pub(crate) async fn start(
        cluster: &'a Cluster,
        program: &str,
        node: String,
        gates: &[Gate],
        listen: &str,
    ) -> Result<Self> {
        cluster.create_node(&node, &[TAINT]).await?;
        let directory = TempDir::new()?;
        let path = directory.path();
        let kubeconfig = cluster.agent_kubeconfig(path, &node).await?;
        fs::create_dir(path.join("net.d"))?;
        fs::write(path.join(UNFINISHED), CONFLIST)?;
        let config = path.join("config.yaml");
        let gates_yaml: String = gates.iter().map(|gate| gate.yaml(path)).collect();
        let rule = format!(
            "- name: bench\n  taint: {{key: example.com/not-ready}}\n  gates:\n{gates_yaml}"
        );
        write_configuration(&config, &rule)?;

        let started = Timestamp::now();
        let run = run_on(&node, &config, &kubeconfig);
        let agent = Agent::start(program, &[&run[..], &["--listen", listen]].concat(), &[])?;
        agent
            .wait_for_count("the gate's state or reason changed", gates.len())
            .await?;
        Ok(Self {
            cluster,
            directory,
            node,
            started,
            agent,
        })
    }

    /// Renames the file into place, as CNI plugins do.
    pub(crate) fn install_conflist(&self) -> Result<()> {
        let path = self.directory.path();
        Ok(fs::rename(path.join(UNFINISHED), path.join(FINISHED))?)
    }

    /// The requests of the agent, without those of the self-check.
    pub(crate) async fn requests(&self) -> Result<Vec<AuditEntry>> {
        let is_own = |entry: &AuditEntry| {
            entry.node.as_deref() == Some(self.node.as_str()) && !entry.uri.contains("dryRun")
        };
        self.cluster.requests(is_own).await
    }
}
