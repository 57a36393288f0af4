use std::fs;
use std::time::SystemTime;

use anyhow::{Context as _, Result};
use jiff::Timestamp;
use serde_json::Value;

use crate::agent;
use crate::habitat::Habitat;
use crate::node::{NAME, Node};
use crate::timeline::{Timeline, World};

const RESOURCE: &str = "example.com/device";
const ALL: &str = "devices.example.com/all";
const LISTED: &str = "devices.example.com/listed";
/// The files in this directory are the devices.
const PRESENT: &str = "/run/devices/present";
const HIDDEN: &str = "/run/devices/hidden";
const LAST: &str = "/run/devices/last";
const CONFIGURATION: &str = r"
apiVersion: untaint/v1alpha1
kind: UntaintConfiguration
rules:
- name: all
  taint: {key: devices.example.com/all, effect: NoSchedule}
  gates:
  - name: devices
    allocatable: {resource: example.com/device, atLeast: 8, equalsCapacity: true}
  - name: last
    file: {path: /run/devices/last}
- name: listed
  taint: {key: devices.example.com/listed, effect: NoSchedule}
  gates:
  - name: devices
    allocatable: {resource: example.com/device, equalsCapacity: true}
";

pub(super) async fn run(habitat: &mut Habitat) -> Result<()> {
    let timeline = &habitat.timeline;
    habitat.install(CONFIGURATION, &[]).await?;
    let plugin = include_str!("../../manifests/device-plugin.yaml");
    habitat.cluster.apply(plugin).await?;
    let taints = [format!("{ALL}:NoSchedule"), format!("{LISTED}:NoSchedule")];
    let taints = taints.each_ref().map(String::as_str);
    let mut node = habitat.node(&taints)?;
    node.up().await?;
    let runs = |world: &World| {
        world
            .pod_is_ready("kube-system/device-plugin-")
            .then_some(())
    };
    timeline.until("the plugin runs", runs).await?;
    for rule in ["all", "listed"] {
        let says = agent::says(rule, "the Node has no allocatable example.com/device");
        let sentence =
            format!("without devices, the gate of the rule {rule} is closed and says so");
        habitat.comes_true(&sentence, says).await?;
    }

    one_by_one(habitat, &node).await?;
    plugin_ends(habitat, &node).await?;
    kubelet_restarts(habitat, &node, &taints).await?;
    one_by_one_again(habitat, &node).await
}

async fn one_by_one(habitat: &Habitat, node: &Node) -> Result<()> {
    let timeline = &habitat.timeline;
    fs::create_dir(node.path(PRESENT)?)?;
    add(node, 1, "sick")?;
    reported(habitat, 0, 1).await?;
    add(node, 2, "")?;
    reported(habitat, 1, 2).await?;
    let closed = agent::says("listed", "allocatable example.com/device is 1, ");
    let sentence = "with equalsCapacity alone, a device that is not healthy keeps the gate closed";
    habitat.comes_true(sentence, closed).await?;
    add(node, 1, "")?;
    reported(habitat, 2, 2).await?;
    let gone = timeline.wait("no taint", |world| world.lacks_taint(NAME, LISTED));
    let gone = gone.await?;
    let healthy = timeline.when(|world| counts(world) == Some((2, 2)));
    habitat.expect(
        "with equalsCapacity alone, two healthy devices open it",
        Timeline::in_order(&[healthy, Some(gone)]),
    );
    for number in 3..=7 {
        add(node, number, "")?;
    }
    add(node, 8, "sick")?;
    reported(habitat, 7, 8).await?;
    habitat
        .comes_true(
            "a device that is not healthy is in the capacity only, and keeps the gate closed",
            agent::says("all", "allocatable example.com/device is 7, less than 8"),
        )
        .await?;
    add(node, 8, "")?;
    reported(habitat, 8, 8).await?;
    let open = agent::waits_for("all", &["last"]);
    let sentence = "the last healthy device opens the gate";
    habitat.comes_true(sentence, open).await?;
    Ok(())
}

async fn plugin_ends(habitat: &Habitat, node: &Node) -> Result<()> {
    let timeline = &habitat.timeline;
    timeline.say("the kubelet is killed; the plugin runs");
    node.restart("kubelet").await?;
    let plugin = "kube-system_device-plugin-*/plugin";
    node.wait_for_log(plugin, "registered", 2).await?;
    let registered = SystemTime::now();
    // Until then, the new kubelet can report 0 devices.
    let again = |world: &World| {
        let report = world.nodes.get(NAME).and_then(|node| last_report(node));
        counts(world) == Some((8, 8)) && report.is_some_and(|time| time > registered)
    };
    timeline.wait("a report of the new kubelet", again).await?;
    habitat
        .comes_true(
            "when the plugin has registered with the new kubelet, the gate is open again",
            agent::waits_for("all", &["last"]),
        )
        .await?;

    fs::rename(node.path(PRESENT)?, node.path(HIDDEN)?)?;
    timeline.say("the plugin stops serving; its pod runs on");
    reported(habitat, 0, 8).await?;
    habitat
        .comes_true(
            "a plugin that ends leaves the capacity, and closes the gate",
            agent::waits_for("all", &["devices", "last"]),
        )
        .await?;
    fs::rename(node.path(HIDDEN)?, node.path(PRESENT)?)?;
    timeline.say("the plugin serves again");
    reported(habitat, 8, 8).await?;
    agent::waits_for("all", &["last"]).await?;
    Ok(())
}

/// Leaves a kubelet without devices, and only their gate closed.
async fn kubelet_restarts(habitat: &Habitat, node: &Node, taints: &[&str]) -> Result<()> {
    fs::rename(node.path(PRESENT)?, node.path(HIDDEN)?)?;
    habitat
        .timeline
        .say("the plugin stops serving, and the kubelet is killed");
    let killed = SystemTime::now();
    node.restart("kubelet").await?;
    reported(habitat, 0, 0).await?;
    let time = killed.elapsed()?;
    habitat.measured(
        "from the end of both to the first report without devices",
        time,
    );
    // The agent has another watch than this program.
    agent::waits_for("all", &["devices", "last"]).await?;
    node.write(LAST, "")?;
    habitat.timeline.say("this scenario puts both taints back");
    habitat.cluster.set_taints(NAME, taints).await?;
    for rule in ["all", "listed"] {
        agent::waits_for(rule, &["devices"]).await?;
        let closed = agent::says(rule, "allocatable example.com/device is 0");
        let sentence = format!(
            "a new kubelet without the plugin reports no capacity either, and the gate of the rule {rule} is closed"
        );
        habitat.comes_true(&sentence, closed).await?;
    }
    Ok(())
}

async fn one_by_one_again(habitat: &Habitat, node: &Node) -> Result<()> {
    let timeline = &habitat.timeline;
    let before = SystemTime::now();
    fs::create_dir(node.path(PRESENT)?)?;
    add(node, 1, "")?;
    reported(habitat, 1, 1).await?;
    agent::says("all", "allocatable example.com/device is 1, less than 8").await?;
    let early = timeline.when(|world| world.lacks_taint(NAME, ALL));
    habitat.expect(
        "the first device of the new kubelet does not open the gate with atLeast",
        early.is_none(),
    );
    for number in 2..=8 {
        add(node, number, "")?;
    }
    let gone = timeline
        .wait("the taint is gone", |world| world.lacks_taint(NAME, ALL))
        .await?;
    let all = timeline.when_after(before, |world| counts(world) == Some((8, 8)));
    let all = all.context("all devices")?;
    habitat.expect("the taint goes when all devices are back", all <= gone);
    let time = gone.duration_since(all)?;
    habitat.measured(
        "from the last device in the Node to the end of the taint",
        time,
    );
    Ok(())
}

/// Makes a device, or changes its health: an empty file is a healthy one.
fn add(node: &Node, number: u32, content: &str) -> Result<()> {
    // A file in the directory is a device from its first moment.
    let draft = node.path("/run/devices/draft")?;
    fs::write(&draft, content)?;
    fs::rename(draft, node.path(&format!("{PRESENT}/{number}"))?)?;
    Ok(())
}

/// When the kubelet has last written the status, in whole seconds.
fn last_report(node: &Value) -> Option<SystemTime> {
    let conditions = node["status"]["conditions"].as_array()?;
    let ready = conditions.iter().find(|one| one["type"] == "Ready")?;
    let time: Timestamp = ready["lastHeartbeatTime"].as_str()?.parse().ok()?;
    Some(time.into())
}

async fn reported(habitat: &Habitat, allocatable: u64, capacity: u64) -> Result<()> {
    let what = format!("{allocatable} of {capacity} devices");
    let wanted = |world: &World| (counts(world) == Some((allocatable, capacity))).then_some(());
    habitat.timeline.until(&what, wanted).await
}

/// What of the resource is allocatable, and the capacity.
fn counts(world: &World) -> Option<(u64, u64)> {
    let status = &world.nodes.get(NAME)?["status"];
    let count = |list: &str| status[list][RESOURCE].as_str()?.parse().ok();
    Some((count("allocatable")?, count("capacity")?))
}
