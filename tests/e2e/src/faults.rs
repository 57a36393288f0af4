//! A fault at each stage on the way to a removal.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use anyhow::Result;
use serde_json::Value;

use crate::agent::{self, closed_gates, rule};
use crate::by_hand::{Network, key};
use crate::habitat::Habitat;
use crate::node::{NAME, Node};
use crate::timeline::World;

/// `stableFor` of the rules.
const STABLE_FOR: Duration = Duration::from_secs(2);

/// What fails, and comes back. Each has a rule of its own, because untaint does not remove a taint at full speed again and
/// again.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Fault {
    /// The container is killed.
    Untaint,
    Kubelet,
    Containerd,
    ApiServer,
    /// Another pod of untaint takes the place of this one.
    Rollout,
}

impl Fault {
    /// The name of its rule.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Untaint => "untaint",
            Self::Kubelet => "kubelet",
            Self::Containerd => "containerd",
            Self::ApiServer => "api-server",
            Self::Rollout => "rollout",
        }
    }

    /// Returns when what has failed is back.
    async fn strike(self, habitat: &mut Habitat, node: &Node) -> Result<()> {
        match self {
            Self::Untaint | Self::Kubelet | Self::Containerd => node.restart(self.name()).await,
            Self::ApiServer => habitat.cluster.restart_api_server().await,
            Self::Rollout => {
                let restart = ["rollout", "restart", "daemonset/untaint"];
                let restart = [&restart[..], &["--namespace=untaint"]].concat();
                habitat.cluster.kubectl(&restart).await?;
                rolled_out(habitat).await
            }
        }
    }
}

/// The rules of these faults.
pub(crate) fn rules(faults: &[Fault], network: &Network) -> Vec<String> {
    let rule = |fault: &Fault| network.rule(fault.name(), STABLE_FOR);
    faults.iter().map(rule).collect()
}

/// Waits until the newest pod of untaint is ready.
pub(crate) async fn rolled_out(habitat: &Habitat) -> Result<()> {
    let status = ["rollout", "status", "daemonset/untaint"];
    let status = [&status[..], &["--namespace=untaint", "--timeout=60s"]].concat();
    habitat.cluster.kubectl(&status).await?;
    Ok(())
}

/// Asserts that no container of untaint has been restarted so far.
pub(crate) fn expect_no_restart(habitat: &Habitat) {
    let is_restarted = |pod: &Arc<Value>| {
        let count = &pod["status"]["containerStatuses"][0]["restartCount"];
        count.as_u64().is_some_and(|count| count > 0)
    };
    let restarted = |world: &World| world.pods_like("untaint/").any(is_restarted);
    habitat.expect(
        "untaint itself does not restart because of any of that",
        habitat.timeline.when(restarted).is_none(),
    );
}

/// Puts the taint of a rule on the Node.
pub(crate) async fn taint(habitat: &Habitat, rule: &str) -> Result<()> {
    let taint = format!("{}=:NoSchedule", key(rule));
    habitat
        .cluster
        .kubectl(&["taint", "nodes", NAME, &taint])
        .await?;
    Ok(())
}

/// Goes from a Node without a network to one without the taint, with the fault at each stage.
pub(crate) async fn at_each_stage(
    fault: Fault,
    habitat: &mut Habitat,
    node: &Node,
    network: &Network,
) -> Result<()> {
    let name = fault.name();
    let key = key(name);
    let timeline = habitat.timeline.clone();
    let gone = |world: &World| world.lacks_taint(NAME, &key);
    let tainted = |world: &World| world.has_taint(NAME, &key);
    let closed = async |names: &[&str]| {
        agent::status(&format!("{name}: only {names:?} are not open"), |status| {
            let rule = rule(status, name);
            closed_gates(rule) == names && rule["decision"] == "waiting"
        })
        .await
    };
    timeline.say(&format!("{name}: a fault at each stage"));
    network.remove(node)?;
    taint(habitat, name).await?;
    let there = timeline.wait("the taint is there", tainted).await?;

    closed(&["conflist", "agent"]).await?;
    fault.strike(habitat, node).await?;
    network.configure(node)?;
    closed(&["agent"]).await?;
    fault.strike(habitat, node).await?;
    closed(&["agent"]).await?;
    let opened = SystemTime::now();
    network.set_healthy(true);
    agent::status(&format!("{name}: every gate is open"), |status| {
        rule(status, name)["decision"] == "stabilizing"
    })
    .await?;
    let struck = SystemTime::now();
    fault.strike(habitat, node).await?;
    timeline.wait("the taint is gone", gone).await?;
    let first = timeline.when_after(there, gone).unwrap_or(there);
    habitat.measured(
        &format!("{name}: from the last gate to the end of the taint"),
        first.duration_since(opened).unwrap_or_default(),
    );
    // While it is replaced, the old pod may still remove the taint.
    let from = if fault == Fault::Untaint {
        struck
    } else {
        opened
    };
    habitat.expect(
        &format!(
            "{name}: with a fault at each stage, the taint goes, and not before stableFor is over"
        ),
        first >= from + STABLE_FOR,
    );

    fault.strike(habitat, node).await?;
    let from = SystemTime::now();
    taint(habitat, name).await?;
    timeline.wait("the taint is back", tainted).await?;
    let again = timeline.wait("the taint is gone", gone).await?;
    habitat.expect(
        &format!("{name}: a taint that comes after one more fault goes too, after stableFor"),
        again >= from + STABLE_FOR,
    );
    Ok(())
}
