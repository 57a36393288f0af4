use std::fs;

use anyhow::{Context as _, Result, ensure};

use crate::client;
use crate::eventually::eventually;
use crate::habitat::Habitat;
use crate::images::parts::KUBE_ROUTER_MANIFEST;
use crate::node::NAME;
use crate::timeline::Timeline;

const KEY: &str = "network.example.com/not-ready";
const CONFLIST: &str = "/etc/cni/net.d/10-kuberouter.conflist";
/// An init container writes the file without a subnet. kube-router adds it later.
const CONFIGURATION: &str = r"
apiVersion: untaint/v1alpha1
kind: UntaintConfiguration
rules:
- name: network
  taint: {key: network.example.com/not-ready, effect: NoExecute}
  gates:
  - name: conflist
    cniConfig: {network: mynet, plugins: [bridge]}
  - name: subnet
    file: {path: /etc/cni/net.d/10-kuberouter.conflist, contains: subnet}
  - name: agent
    httpGet: {port: 20244, path: /healthz}
";

pub(super) async fn run(habitat: &mut Habitat) -> Result<()> {
    let timeline = &habitat.timeline;
    habitat.install(CONFIGURATION, &[]).await?;
    let manifest = fs::read_to_string(habitat.result("images").join(KUBE_ROUTER_MANIFEST))?;
    let policy = "imagePullPolicy: Always";
    ensure!(manifest.contains(policy), "the manifest has no {policy}");
    let manifest = manifest.replace(policy, "imagePullPolicy: Never");
    habitat.cluster.apply(&manifest).await?;
    client::create(habitat).await?;
    let mut node = habitat.node(&[&format!("{KEY}:NoExecute")])?;
    node.up().await?;

    node.wait_for_path(CONFLIST).await?;
    let has_subnet = || anyhow::Ok(fs::read_to_string(node.path(CONFLIST)?)?.contains("subnet"));
    let at_first = has_subnet()?;
    timeline.say("the conflist is there");
    // By the time of the file: this program can see the change later than untaint does.
    let complete = eventually("the conflist has a subnet", || {
        let path = node.path(CONFLIST).ok()?;
        has_subnet().ok().filter(|has| *has)?;
        fs::metadata(path).ok()?.modified().ok()
    })
    .await?;
    timeline.say("the conflist has a subnet");
    let gone = timeline
        .wait("the taint is gone", |world| world.lacks_taint(NAME, KEY))
        .await?;
    habitat.expect(
        "the conflist has no subnet at first, and has one before the taint goes",
        !at_first && complete <= gone,
    );
    let connects = client::connects(habitat);
    let sentence = "the first connection of the pod works";
    habitat.comes_true(sentence, connects).await?;

    let changes = [
        timeline.version_when(|world| world.is_ready(NAME)),
        timeline.version_when(|world| world.lacks_taint(NAME, KEY)),
        timeline.version_when(client::is_scheduled),
        timeline.version_when(|world| client::address(world).is_some()),
    ];
    habitat.expect(
        "in this order: Node Ready, taint gone, pod scheduled, pod runs",
        Timeline::in_order(&changes),
    );
    let ready = timeline.when(|world| world.is_ready(NAME));
    let ready = ready.context("ready")?;
    habitat.expect(
        "the Node is Ready before the conflist has its subnet",
        ready <= complete,
    );
    habitat.measured(
        "from Ready to the end of the taint",
        gone.duration_since(ready)?,
    );
    Ok(())
}
