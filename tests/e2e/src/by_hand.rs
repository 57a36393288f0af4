//! A CNI whose parts the scenario makes and removes itself: a configuration, and an agent with a health check.

use std::fs;
use std::time::Duration;

use anyhow::Result;
use testkit::health::HealthEndpoint;

use crate::node::Node;

const CONFLIST: &str = "/etc/cni/net.d/10-by-hand.conflist";
const CONTENT: &str = r#"{
  "cniVersion": "1.0.0",
  "name": "by-hand",
  "plugins": [{"type": "bridge", "ipam": {"type": "host-local", "subnet": "10.98.0.0/24"}}]
}"#;

pub(crate) struct Network {
    health: HealthEndpoint,
}

impl Network {
    /// Without a configuration, and not healthy.
    pub(crate) async fn new() -> Result<Self> {
        let health = HealthEndpoint::start(503).await?;
        Ok(Self { health })
    }

    /// The rule of this name, with the taint [`key`] and the gates `conflist` and `agent`. More gates can follow.
    pub(crate) fn rule(&self, name: &str, stable_for: Duration) -> String {
        format!(
            "- name: {name}
  taint: {{key: {}}}
  stableFor: {}s
  gates:
  - name: conflist
    cniConfig: {{network: by-hand, plugins: [bridge], first: true}}
  - name: agent
    httpGet: {{port: {}, path: /healthz}}
",
            key(name),
            stable_for.as_secs(),
            self.health.port()
        )
    }

    /// Writes the configuration.
    #[expect(clippy::unused_self, reason = "a network has this configuration")]
    pub(crate) fn configure(&self, node: &Node) -> Result<()> {
        node.write(CONFLIST, CONTENT)
    }

    pub(crate) fn set_healthy(&self, healthy: bool) {
        self.health.set(if healthy { 200 } else { 503 });
    }

    /// Removes the configuration, if there is one. The agent is not healthy then.
    pub(crate) fn remove(&self, node: &Node) -> Result<()> {
        self.set_healthy(false);
        let place = node.path(CONFLIST)?;
        if place.exists() {
            fs::remove_file(place)?;
        }
        Ok(())
    }
}

/// A configuration with these rules.
pub(crate) fn configuration(rules: &[String]) -> String {
    let head = "apiVersion: untaint/v1alpha1\nkind: UntaintConfiguration\nrules:\n";
    format!("{head}{}", rules.concat())
}

/// The key of the taint of a rule.
pub(crate) fn key(rule: &str) -> String {
    format!("{rule}.example.com/not-ready")
}
