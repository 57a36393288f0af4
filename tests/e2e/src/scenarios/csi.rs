use std::time::SystemTime;

use anyhow::Result;

use crate::agent;
use crate::habitat::Habitat;
use crate::node::NAME;
use crate::timeline::{Timeline, World};

const KEY: &str = "storage.example.com/agent-not-ready";
const DRIVER: &str = "storage.example.com";
const LAST: &str = "/run/storage/last";
const MANIFEST: &str = include_str!("../../manifests/csi-driver.yaml");
const CONFIGURATION: &str = r"
apiVersion: untaint/v1alpha1
kind: UntaintConfiguration
rules:
- name: storage
  taint: {key: storage.example.com/agent-not-ready, effect: NoExecute}
  gates:
  - name: driver
    csiDriver: {name: storage.example.com, allocatable: true}
  - name: last
    file: {path: /run/storage/last}
";

pub(super) async fn run(habitat: &mut Habitat) -> Result<()> {
    let (timeline, cluster) = (&habitat.timeline, &habitat.cluster);
    habitat.install(CONFIGURATION, &[]).await?;
    let mut node = habitat.node(&[&format!("{KEY}:NoExecute")])?;
    node.up().await?;
    let exists = |world: &World| world.csi_nodes.contains_key(NAME);
    timeline.wait("a CSINode", exists).await?;
    habitat
        .comes_true(
            "with a CSINode without drivers, the gate is closed and says so",
            agent::says("storage", "is not in the CSINode; registered: none"),
        )
        .await?;

    cluster.kubectl(&["delete", "csinode", NAME]).await?;
    timeline.wait("no CSINode", |world| !exists(world)).await?;
    habitat
        .comes_true(
            "without a CSINode, the gate is closed and says so",
            agent::says("storage", "the node has no CSINode yet"),
        )
        .await?;

    cluster.apply(MANIFEST).await?;
    let registered = timeline
        .wait("the driver in the CSINode", has_driver)
        .await?;
    habitat
        .comes_true(
            "the gate opens when the kubelet has registered the driver with its number of volumes",
            agent::waits_for("storage", &["last"]),
        )
        .await?;
    habitat.measured(
        "from the driver in the CSINode to an open gate, at most",
        registered.elapsed()?,
    );

    let before = SystemTime::now();
    node.restart("kubelet").await?;
    timeline.say("the kubelet is killed");
    node.wait_for_log("kube-system_csi-driver-*/driver", "registered: true", 2)
        .await?;
    timeline.say("the kubelet has registered the driver again");
    let without = timeline.when_after(before, |world| !has_driver(world));
    habitat.expect(
        "a restart of the kubelet does not take the driver from the CSINode",
        without.is_none(),
    );
    agent::waits_for("storage", &["last"]).await?;

    let delete = [
        "--namespace",
        "kube-system",
        "delete",
        "daemonset",
        "csi-driver",
    ];
    cluster.kubectl(&delete).await?;
    let lost = timeline
        .wait("no driver in the CSINode", |world| !has_driver(world))
        .await?;
    agent::waits_for("storage", &["driver", "last"]).await?;
    node.write(LAST, "")?;
    agent::waits_for("storage", &["driver"]).await?;
    let gone = timeline.when(|world| world.lacks_taint(NAME, KEY));
    habitat.expect(
        "without the driver, the gate is closed again, and the taint stays",
        gone.is_none(),
    );

    cluster.apply(MANIFEST).await?;
    let back = timeline
        .wait("the driver in the CSINode", has_driver)
        .await?;
    let gone = timeline.wait("no taint", |world| world.lacks_taint(NAME, KEY));
    let sentence = "the taint goes when the driver has registered again";
    let gone = habitat.comes_true(sentence, gone).await?;
    let changes = [
        timeline.version_after(lost, has_driver),
        timeline.version_when(|world| world.lacks_taint(NAME, KEY)),
    ];
    habitat.expect(
        "in this order: driver in the CSINode, taint gone",
        Timeline::in_order(&changes),
    );
    // The events of two watches can arrive in any order.
    if let Ok(time) = gone.duration_since(back) {
        let what = "from the driver in the CSINode to the end of the taint";
        habitat.measured(what, time);
    }
    Ok(())
}

/// Whether the `CSINode` has the driver with its number of volumes.
fn has_driver(world: &World) -> bool {
    let csi_node = world.csi_nodes.get(NAME);
    let drivers = csi_node.and_then(|it| it["spec"]["drivers"].as_array());
    let mut drivers = drivers.into_iter().flatten();
    drivers.any(|driver| driver["name"] == DRIVER && driver["allocatable"]["count"] == 25)
}
