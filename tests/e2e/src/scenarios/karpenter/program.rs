//! Karpenter itself, with its KWOK provider: it launches machines that exist only as objects.

use std::fs::File;
use std::net::{Ipv4Addr, TcpListener};
use std::process::Stdio;

use anyhow::{Context as _, Result};
use rustix::process::{Pid, Signal, kill_process};
use testkit::agent;
use tokio::process::{Child, Command};

use super::history::History;
use crate::commands::run;
use crate::eventually::eventually_async;
use crate::habitat::{Habitat, RUN};

/// A running Karpenter, and what it sees.
pub(super) struct Karpenter {
    child: Child,
    pub(super) claims: History,
    pub(super) nodes: History,
}

impl Karpenter {
    /// Installs its resources, starts it, and returns when it is ready.
    pub(super) async fn start(habitat: &Habitat) -> Result<Self> {
        let programs = habitat.programs("karpenter");
        let definitions = run(&programs.join("crds").display().to_string(), &[""; 0])?;
        let file = format!("{RUN}/karpenter.yaml");
        std::fs::write(&file, definitions)?;
        let cluster = &habitat.cluster;
        cluster.kubectl(&["create", "--filename", &file]).await?;
        cluster
            .kubectl(&["wait", "--for=condition=Established", "--filename", &file])
            .await?;

        let [metrics, health] = [free_port()?, free_port()?];
        let log = File::create(cluster.directory().join("karpenter.log"))?;
        let child = Command::new(programs.join("kwok"))
            .env_clear()
            .env("KUBECONFIG", cluster.admin_kubeconfig())
            .env("CLUSTER_NAME", "e2e")
            .env("SYSTEM_NAMESPACE", "default")
            .env("DISABLE_LEADER_ELECTION", "true")
            .env("METRICS_PORT", metrics.to_string())
            .env("HEALTH_PROBE_PORT", health.to_string())
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log)
            .kill_on_drop(true)
            .spawn()
            .context("start Karpenter")?;
        let health = format!("127.0.0.1:{health}");
        eventually_async("Karpenter is ready", async || {
            let (code, _) = agent::get(&health, "/readyz").await.ok()?;
            (code == 200).then_some(())
        })
        .await?;
        habitat.timeline.say("Karpenter is ready");
        Ok(Self {
            child,
            claims: History::of(cluster.client().await?, "/apis/karpenter.sh/v1/nodeclaims")?,
            nodes: History::of(cluster.client().await?, "/api/v1/nodes")?,
        })
    }

    /// Stops it until [`Self::resume`].
    pub(super) fn pause(&self) -> Result<()> {
        self.signal(Signal::STOP)
    }

    pub(super) fn resume(&self) -> Result<()> {
        self.signal(Signal::CONT)
    }

    fn signal(&self, signal: Signal) -> Result<()> {
        let id = self.child.id().context("Karpenter has ended")?;
        let id = Pid::from_raw(id.cast_signed()).context("an id")?;
        Ok(kill_process(id, signal)?)
    }

    /// Deletes all that the scenario has made, and waits until Karpenter has removed its finalizers.
    pub(super) async fn clear(&self, habitat: &Habitat) -> Result<()> {
        let cluster = &habitat.cluster;
        // No kubelet confirms the end of a pod.
        let pods = ["delete", "pods", "--all", "--grace-period=0", "--force"];
        cluster.kubectl(&pods).await?;
        for kind in ["nodepools", "nodeclaims"] {
            cluster
                .kubectl(&["delete", kind, "--all", "--wait=false"])
                .await?;
        }
        self.claims.until_all("no NodeClaims", 0, |_| true).await?;
        self.nodes.until_all("no Nodes", 0, |_| true).await
    }
}

fn free_port() -> Result<u16> {
    Ok(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?
        .local_addr()?
        .port())
}

/// A NodePool of small machines, with `more` fields in the specification of its Nodes. Karpenter replaces no
/// Node.
pub(super) fn pool(registration_delay: &str, more: &str) -> String {
    format!(
        r"
apiVersion: karpenter.kwok.sh/v1alpha1
kind: KWOKNodeClass
metadata: {{name: machines}}
spec: {{nodeRegistrationDelay: {registration_delay}}}
---
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {{name: pool}}
spec:
  disruption: {{consolidateAfter: Never, budgets: [{{nodes: '0'}}]}}
  template:
    spec:
      expireAfter: Never
      nodeClassRef: {{group: karpenter.kwok.sh, kind: KWOKNodeClass, name: machines}}
      requirements:
      - {{key: node.kubernetes.io/instance-type, operator: In, values: [c-1x-amd64-linux]}}
{more}"
    )
}

/// A pod that asks for this share of a machine's only CPU.
pub(super) fn pod(name: &str, cpu: &str, tolerates: &str) -> String {
    format!(
        r"---
apiVersion: v1
kind: Pod
metadata: {{name: {name}}}
spec:
  tolerations: [{tolerates}]
  containers:
  - {{name: c, image: none, resources: {{requests: {{cpu: {cpu}}}}}}}
"
    )
}
