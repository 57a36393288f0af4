use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::time::Duration;

use anyhow::Result;

use crate::agent::{self, closed_gates, rule};
use crate::by_hand::{Network, configuration, key};
use crate::eventually::eventually;
use crate::faults::taint;
use crate::habitat::Habitat;
use crate::node::{NAME, Node};
use crate::timeline::World;

const NET_D: &str = "/etc/cni/net.d";
/// A rule for each directory.
const INNER: &str = "net-d";
const OUTER: &str = "etc-cni";

pub(super) async fn run(habitat: &mut Habitat) -> Result<()> {
    let timeline = &habitat.timeline;
    let network = Network::new().await?;
    let rules = [INNER, OUTER].map(|name| network.rule(name, Duration::ZERO));
    habitat.install(&configuration(&rules), &[]).await?;
    let mut node = habitat.node(&[])?;
    node.up().await?;
    network.configure(&node)?;
    agent::ready().await?;
    let waits = async |name| {
        let what = format!("{name}: the configuration is seen");
        agent::status(&what, |status| {
            closed_gates(rule(status, name)) == ["agent"]
        })
        .await
    };
    let goes = async |name| {
        network.set_healthy(true);
        let gone = |world: &World| world.lacks_taint(NAME, &key(name));
        timeline.wait("the taint is gone", gone).await
    };

    taint(habitat, INNER).await?;
    waits(INNER).await?;
    remove(&node, NET_D).await?;
    timeline.say("net.d is removed, and containerd has made it again");
    let mode = fs::metadata(node.path(NET_D)?)?.permissions().mode();
    habitat.expect(
        "containerd makes net.d with mode 0700",
        mode & 0o777 == 0o700,
    );
    closed(habitat, INNER, "in /etc/cni/net.d").await?;
    network.configure(&node)?;
    waits(INNER).await?;
    goes(INNER).await?;
    habitat.expect(
        "net.d: untaint sees what is in the new one, and the taint goes",
        true,
    );

    network.set_healthy(false);
    taint(habitat, OUTER).await?;
    waits(OUTER).await?;
    remove(&node, "/etc/cni").await?;
    timeline.say("/etc/cni is removed, and containerd has made it again");
    network.configure(&node)?;
    closed(habitat, OUTER, "delete the pod").await?;
    habitat.expect(
        "/etc/cni: untaint sees that its mount is the old one, and names the remedy",
        true,
    );
    network.set_healthy(true);
    agent::status("only the configuration is missing", |status| {
        closed_gates(rule(status, OUTER)) == ["conflist"]
    })
    .await?;
    habitat.expect(
        "/etc/cni: the taint stays",
        timeline
            .until("the Node", |world| Some(world.has_taint(NAME, &key(OUTER))))
            .await?,
    );
    let pods = ["delete", "pods", "--all", "--namespace=untaint"];
    habitat.cluster.kubectl(&pods).await?;
    goes(OUTER).await?;
    habitat.expect(
        "/etc/cni: the taint goes when its DaemonSet has created the pod again",
        true,
    );
    Ok(())
}

/// Removes a directory, and waits until containerd, which ends because of that, has made net.d again.
async fn remove(node: &Node, directory: &str) -> Result<()> {
    let old = node.path(directory)?;
    fs::remove_dir_all(&old)?;
    let net_d = node.path(NET_D)?;
    eventually(NET_D, || net_d.exists().then_some(())).await
}

/// Waits until the gate `conflist` is closed with a message that contains this text.
async fn closed(habitat: &Habitat, name: &str, text: &str) -> Result<()> {
    let status = agent::status(&format!("{name}: closed: {text}"), |status| {
        let rule = rule(status, name);
        let message = rule["gates"][0]["message"].as_str().unwrap_or_default();
        closed_gates(rule).contains(&"conflist") && message.contains(text)
    })
    .await?;
    let message = &rule(&status, name)["gates"][0]["message"];
    habitat.timeline.say(&format!("{name}: {message}"));
    Ok(())
}
