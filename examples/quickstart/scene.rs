//! The Node, its CNI and its API server, and what can happen to them. Each deed is told once it is done.

use std::path::PathBuf;
use std::time::Instant;
use std::{fs, io};

use anyhow::{Context as _, Result};
use tempfile::TempDir;
use testkit::api::{ApiServer, Options};
use testkit::health::HealthEndpoint;
use testkit::node;
use tokio::sync::Notify;
use untaint::config::{self, Configuration};

use crate::timeline::{Line, Timeline, Tone, Who};
use crate::verdict::Expected;

/// The own Node.
pub(crate) const NODE: &str = "worker-1";
/// Key of the taint that the rule is about.
const KEY: &str = "node.cilium.io/agent-not-ready";
const TAINT: &str = "node.cilium.io/agent-not-ready:NoExecute";
/// The node controller's.
const FOREIGN: &str = "node.kubernetes.io/not-ready:NoSchedule";
/// The gate on the CNI directory.
pub(crate) const CONFLIST: &str = "conflist";
/// The gate on the health endpoint of the CNI's own agent.
pub(crate) const AGENT: &str = "agent";

/// What the agent is to make of [`story::play`](crate::story::play).
pub(crate) fn expected() -> Expected<'static> {
    Expected {
        taint: TAINT,
        foreign: FOREIGN,
        gates: &[CONFLIST, AGENT],
        removals: 2,
    }
}

/// All that is around the agent.
pub(crate) struct Scene {
    pub(crate) server: ApiServer,
    pub(crate) timeline: Timeline,
    health: HealthEndpoint,
    dir: TempDir,
}

impl Scene {
    /// No Node, no CNI directory, and a health endpoint that says no.
    pub(crate) async fn set() -> Result<Self> {
        Ok(Self {
            server: ApiServer::start(Options::default()).await?,
            timeline: Timeline::start(),
            health: HealthEndpoint::start(503).await?,
            dir: tempfile::Builder::new().prefix("untaint-").tempdir()?,
        })
    }

    pub(crate) fn net_d(&self) -> PathBuf {
        self.dir.path().join("net.d")
    }

    pub(crate) fn kubeconfig(&self) -> Result<PathBuf> {
        self.server.kubeconfig(self.dir.path())
    }

    /// That of examples/cilium.yaml, less what a user may want beyond the main job.
    pub(crate) fn rules(&self) -> String {
        let (dir, port) = (self.net_d(), self.health.port());
        let dir = dir.display();
        format!(
            "rules:\n\
             - name: cilium\n\
             \x20 taint: {{key: {KEY}}}\n\
             \x20 gates:\n\
             \x20 - name: {CONFLIST}\n\
             \x20   cniConfig:\n\
             \x20     dir: {dir}\n\
             \x20     network: cilium\n\
             \x20     plugins: [cilium-cni]\n\
             \x20 - name: {AGENT}\n\
             \x20   httpGet: {{port: {port}, path: /healthz}}\n"
        )
    }

    pub(crate) fn configuration(&self) -> Result<Configuration> {
        let (version, kind) = (config::API_VERSION, config::KIND);
        let rules = self.rules();
        Ok(config::parse(&format!(
            "apiVersion: {version}\nkind: {kind}\n{rules}"
        ))?)
    }

    /// As the kubelet does with `registerWithTaints`; the foreign taint is what a new Node has anyway.
    pub(crate) fn register_node(&self) -> Result<()> {
        self.act(Who::Node, "registers", NODE, || {
            self.server.create_node(node(NODE, &[TAINT, FOREIGN]));
            Ok(())
        })
    }

    pub(crate) fn taint_again(&self) -> Result<()> {
        self.act(Who::Someone, "adds the taint", TAINT, || {
            let taint = node(NODE, &[TAINT])["spec"]["taints"][0].take();
            self.server.update_node(NODE, |node| {
                if let Some(taints) = node["spec"]["taints"].as_array_mut() {
                    taints.push(taint);
                }
            });
            Ok(())
        })
    }

    pub(crate) fn make_directory(&self) -> Result<()> {
        self.act(Who::Cni, "creates", "net.d", || {
            fs::create_dir(self.net_d())
        })
    }

    /// Half of `content` under the file's final name: what a reader may see of a CNI that does not rename.
    pub(crate) fn write_half(&self, file: &str, content: &str) -> Result<()> {
        let (half, all) = (content.len() / 2, content.len());
        let detail = format!("net.d/{file}: {half} of {all} bytes so far");
        self.act(Who::Cni, "writes", &detail, || {
            fs::write(self.net_d().join(file), &content.as_bytes()[..half])
        })
    }

    /// All of `content` at once, as a CNI should.
    pub(crate) fn write_by_rename(&self, file: &str, content: &str) -> Result<()> {
        let temporary = format!("{file}.tmp");
        let detail = format!("net.d/{temporary} to {file}: {} bytes", content.len());
        self.act(Who::Cni, "renames", &detail, || {
            let temporary = self.net_d().join(temporary);
            fs::write(&temporary, content)?;
            fs::rename(&temporary, self.net_d().join(file))
        })
    }

    pub(crate) fn answer_health(&self, status: u16) -> Result<()> {
        self.act(
            Who::Cni,
            "answers probes",
            &format!("with {status} from now on"),
            || {
                self.health.set(status);
                Ok(())
            },
        )
    }

    pub(crate) fn start_agent(&self, start: &Notify) -> Result<()> {
        self.act(
            Who::Node,
            "starts the agent",
            concat!("untaint ", env!("CARGO_PKG_VERSION")),
            || {
                start.notify_one();
                Ok(())
            },
        )
    }

    /// Does something and tells of it.
    fn act(
        &self,
        who: Who,
        subject: &str,
        detail: &str,
        deed: impl FnOnce() -> io::Result<()>,
    ) -> Result<()> {
        let at = Instant::now();
        deed().with_context(|| format!("{subject} {detail}"))?;
        let line = Line {
            at,
            who,
            subject: subject.into(),
            detail: detail.into(),
            tone: Tone::Plain,
        };
        Ok(self.timeline.print(&line)?)
    }

    /// With the directory's path as short as elsewhere in the timeline.
    pub(crate) fn shorten(&self, text: &str) -> String {
        let long = self.net_d();
        text.replace(&*long.to_string_lossy(), "net.d")
    }
}
