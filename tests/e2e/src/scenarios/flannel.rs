use std::fs;

use anyhow::{Context as _, Result, ensure};

use crate::client;
use crate::habitat::Habitat;
use crate::images::parts::FLANNEL_MANIFEST;
use crate::node::NAME;
use crate::timeline::{Timeline, World};

pub(super) const EXAMPLE: &str = include_str!("../../../../examples/flannel.yaml");
pub(super) const KEY: &str = "startup-taint.cluster-autoscaler.kubernetes.io/flannel-not-ready";
const CONFLIST: &str = "/etc/cni/net.d/10-flannel.conflist";
const LEASE: &str = "/run/flannel/subnet.env";

pub(super) async fn run(habitat: &mut Habitat) -> Result<()> {
    let timeline = &habitat.timeline;
    habitat.install(EXAMPLE, &[]).await?;
    deploy(habitat).await?;
    client::create(habitat).await?;
    let mut node = habitat.node(&[&format!("{KEY}:NoSchedule")])?;
    node.up().await?;

    node.wait_for_path(CONFLIST).await?;
    timeline.say("the conflist is there");
    node.wait_for_path(LEASE).await?;
    timeline.say("subnet.env is there");
    let gone = timeline
        .wait("the taint is gone", |world| world.lacks_taint(NAME, KEY))
        .await?;
    let connects = client::connects(habitat);
    let sentence = "the first connection of the pod works";
    habitat.comes_true(sentence, connects).await?;

    let first_seen = timeline.when(|world| world.nodes.contains_key(NAME));
    let first_seen = first_seen.context("the Node")?;
    let tainted = timeline.when(|world| world.has_taint(NAME, KEY));
    habitat.expect(
        "the Node has the taint from its first moment",
        tainted == Some(first_seen),
    );
    let written = |path: &str| anyhow::Ok(fs::metadata(node.path(path)?)?.modified()?);
    let (conflist, lease) = (written(CONFLIST)?, written(LEASE)?);
    let ready = timeline
        .when(|world| world.is_ready(NAME))
        .context("ready")?;
    habitat.expect(
        "the Node is Ready after the conflist is there",
        conflist <= ready,
    );
    let has_address = |world: &World| client::address(world).is_some();
    let changes = [
        timeline.version_when(|world| world.lacks_taint(NAME, KEY)),
        timeline.version_when(client::is_scheduled),
        timeline.version_when(has_address),
    ];
    habitat.expect(
        "in this order: subnet.env, taint gone, pod scheduled, pod runs",
        lease <= gone && Timeline::in_order(&changes),
    );
    let subnet = fs::read_to_string(node.path(LEASE)?)?;
    let network = subnet
        .lines()
        .find_map(|line| line.strip_prefix("FLANNEL_SUBNET="));
    let prefix = network.and_then(|network| network.strip_suffix("1/24"));
    let prefix = prefix.context("a subnet")?;
    let address = |world: &World| Some(client::address(world)?.to_owned());
    let address = timeline.until("an address", address).await?;
    habitat.expect(
        "the pod has an address of Flannel's lease",
        address.starts_with(prefix),
    );
    habitat.measured("from the Node to Ready", ready.duration_since(first_seen)?);
    habitat.measured(
        "from subnet.env to the end of the taint",
        gone.duration_since(lease)?,
    );
    let runs = timeline.when(has_address).context("the pod runs")?;
    habitat.measured(
        "from subnet.env to the pod's address",
        runs.duration_since(lease)?,
    );
    Ok(())
}

/// Applies the manifest of Flannel with one change: the CNI plugin here is an older one, from the `plugins` of
/// `containernetworking`, and knows no version after 0.4.0.
pub(super) async fn deploy(habitat: &Habitat) -> Result<()> {
    let manifest = fs::read_to_string(habitat.result("images").join(FLANNEL_MANIFEST))?;
    let version = r#""cniVersion": "1.0.0""#;
    ensure!(manifest.contains(version), "the manifest has no {version}");
    let manifest = manifest.replace(version, r#""cniVersion": "0.4.0""#);
    habitat.cluster.apply(&manifest).await
}
