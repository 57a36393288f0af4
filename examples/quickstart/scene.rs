//! The Node, its components, and its API server. Each change is printed after it is made.

use std::cell::RefCell;
use std::path::PathBuf;
use std::time::Instant;
use std::{fs, io};

use anyhow::{Context as _, Result};
use serde_json::json;
use tempfile::TempDir;
use testkit::api::{ApiServer, CSI_NODES, Options};
use testkit::health::HealthEndpoint;
use testkit::node;
use tokio::sync::Notify;

use crate::rules::{AGENT, CONFLIST, CSI_DRIVER, DRIVER, NETWORK, NODE, STORAGE, TAINTS};
use crate::timeline::{Line, Timeline, Tone, Who};
use crate::verdict::{Event, Gate, What};

const CILIUM: &str = include_str!("../../tests/fixtures/cni/cilium/05-cilium.conflist");
const FLANNEL: &str = include_str!("../../tests/fixtures/cni/flannel/10-flannel.conflist");

/// Everything around the agent.
pub(crate) struct Scene {
    pub(crate) server: ApiServer,
    pub(crate) timeline: Timeline,
    /// The true state of the gates, independent of the agent.
    facts: RefCell<Vec<Event>>,
    health: HealthEndpoint,
    dir: TempDir,
}

impl Scene {
    /// Starts without a Node and a CNI directory, and with a health endpoint that answers 503.
    pub(crate) async fn set() -> Result<Self> {
        Ok(Self {
            server: ApiServer::start(Options::default()).await?,
            timeline: Timeline::start(),
            facts: RefCell::default(),
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

    pub(crate) fn health_port(&self) -> u16 {
        self.health.port()
    }

    /// Registers the Node as the kubelet does with `registerWithTaints`. Every new Node has the foreign taints.
    pub(crate) fn register_node(&self) -> Result<()> {
        let what = format!("registers the Node {NODE}, with {} taints", TAINTS.len());
        self.act(Who::Kubelet, None, &what, || {
            self.server.create_node(node(NODE, &TAINTS));
            Ok(())
        })
    }

    pub(crate) fn start_agent(&self, start: &Notify) -> Result<()> {
        let what = concat!("starts untaint ", env!("CARGO_PKG_VERSION"));
        self.act(Who::Kubelet, None, what, || {
            start.notify_one();
            Ok(())
        })
    }

    pub(crate) fn taint_again(&self) -> Result<()> {
        let what = "adds the taint to the Node again";
        self.act(Who::Controller, Some(NETWORK), what, || {
            let taint = node(NODE, &TAINTS[..1])["spec"]["taints"][0].take();
            self.server.update_node(NODE, |node| {
                if let Some(taints) = node["spec"]["taints"].as_array_mut() {
                    taints.push(taint);
                }
            });
            Ok(())
        })
    }

    pub(crate) fn make_directory(&self) -> Result<()> {
        self.act(
            Who::Cni,
            Some(NETWORK),
            "creates the directory net.d",
            || fs::create_dir(self.net_d()),
        )
    }

    /// The configuration of another network, which does not open the gate.
    pub(crate) fn write_flannel(&self) -> Result<()> {
        self.write_by_rename("10-flannel.conflist", FLANNEL)
    }

    /// Writes half of the file under its final name, as a CNI plugin does that does not rename.
    pub(crate) fn write_half_of_cilium(&self) -> Result<()> {
        let (half, all) = (CILIUM.len() / 2, CILIUM.len());
        let what = format!("writes net.d/05-cilium.conflist: {half} of {all} bytes so far");
        self.act(Who::Cni, Some(NETWORK), &what, || {
            let path = self.net_d().join("05-cilium.conflist");
            fs::write(path, &CILIUM.as_bytes()[..half])
        })
    }

    pub(crate) fn write_cilium(&self) -> Result<()> {
        self.state(CONFLIST, true);
        self.write_by_rename("05-cilium.conflist", CILIUM)
    }

    /// Renames a file with all of `content` into place, as a CNI plugin should.
    fn write_by_rename(&self, file: &str, content: &str) -> Result<()> {
        let what = format!("renames a file of {} bytes to net.d/{file}", content.len());
        self.act(Who::Cni, Some(NETWORK), &what, || {
            let temporary = self.net_d().join(format!("{file}.tmp"));
            fs::write(&temporary, content)?;
            fs::rename(&temporary, self.net_d().join(file))
        })
    }

    pub(crate) fn answer_health(&self, status: u16) -> Result<()> {
        self.state(AGENT, status == 200);
        let what = format!("answers health checks with {status} from now on");
        self.act(Who::Cni, Some(NETWORK), &what, || {
            self.health.set(status);
            Ok(())
        })
    }

    /// Creates the CSINode without drivers, as the kubelet does when it starts.
    pub(crate) fn create_csi_node(&self) -> Result<()> {
        let what = "creates the CSINode, in which no driver is registered yet";
        self.act(Who::Kubelet, Some(STORAGE), what, || {
            let csi_node = json!({"metadata": {"name": NODE}, "spec": {"drivers": null}});
            self.server.create(CSI_NODES, csi_node);
            Ok(())
        })
    }

    /// Adds the driver to the CSINode, as the kubelet does.
    pub(crate) fn register_driver(&self) -> Result<()> {
        self.state(DRIVER, true);
        let what = format!("registers: the kubelet adds {CSI_DRIVER} to the CSINode");
        self.act(Who::CsiDriver, Some(STORAGE), &what, || {
            let driver = json!({
                "name": CSI_DRIVER,
                "nodeID": "i-0123456789abcdef0",
                "topologyKeys": ["topology.ebs.csi.aws.com/zone"],
                "allocatable": {"count": 25},
            });
            self.server.update(CSI_NODES, NODE, |csi_node| {
                csi_node["spec"]["drivers"] = json!([driver]);
            });
            Ok(())
        })
    }

    /// Records that the condition of `gate` is about to hold, or not to hold. Call this before the change, because the
    /// agent can be very fast.
    fn state(&self, gate: Gate, holds: bool) {
        self.facts.borrow_mut().push(Event {
            at: self.timeline.since_start(Instant::now()),
            what: What::Fact { gate, holds },
        });
    }

    pub(crate) fn facts(&self) -> Vec<Event> {
        self.facts.borrow().clone()
    }

    /// Makes a change and prints it.
    fn act(
        &self,
        who: Who,
        rule: Option<&str>,
        what: &str,
        deed: impl FnOnce() -> io::Result<()>,
    ) -> Result<()> {
        let at = Instant::now();
        deed().with_context(|| what.to_owned())?;
        let line = Line {
            at,
            who,
            rule: rule.map(Into::into),
            what: what.into(),
            tone: Tone::Plain,
        };
        Ok(self.timeline.print(&line)?)
    }

    /// Shortens the path of the directory, as elsewhere in the timeline.
    pub(crate) fn shorten(&self, text: &str) -> String {
        let long = self.net_d();
        text.replace(&*long.to_string_lossy(), "net.d")
    }
}
