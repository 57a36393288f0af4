use anyhow::{Context as _, Result};

use crate::habitat::Habitat;
use crate::node::{NAME, Node};
use crate::stand_in::{self, KEY};
use crate::timeline::{World, condition};

const CONFIGURATION: &str = r"
apiVersion: untaint/v1alpha1
kind: UntaintConfiguration
rules:
- name: network
  taint: {key: stand-in.example.com/not-ready, effect: NoSchedule}
  gates:
  - name: conflist
    cniConfig: {network: stand-in, plugins: [bridge], first: true, newerThanBoot: true}
  - name: agent
    httpGet: {port: 9879, path: /healthz}
  - name: node
    nodeCondition: {type: Ready}
";

pub(super) async fn run(habitat: &mut Habitat) -> Result<()> {
    let timeline = &habitat.timeline;
    let tainted = |world: &World| world.has_taint(NAME, KEY);
    let untainted = |world: &World| world.lacks_taint(NAME, KEY);
    habitat.install(CONFIGURATION, &[]).await?;
    stand_in::deploy(habitat).await?;
    let mut node = habitat.node(&[&format!("{KEY}:NoSchedule")])?;
    node.up().await?;
    let first_boot = boot_time(&node)?;
    stand_in::go(&node)?;
    let gone = timeline.wait("the taint is gone", untainted).await?;

    node.down()?;
    node.up().await?;
    timeline.say("switched off and on, without retaint");
    habitat.expect(
        "the time of the boot is later",
        boot_time(&node)? > first_boot,
    );
    stand_in::create_app(habitat, "unprotected").await?;
    let ended = timeline
        .until("the app ends", |world| world.ended("default/unprotected"))
        .await?;
    habitat.expect(
        "without retaint, a pod runs before the network works again, and fails",
        ended["exitCode"] == 1,
    );
    habitat.expect(
        "the kubelet does not put the taint back",
        timeline.when_after(gone, tainted).is_none(),
    );

    stand_in::go(&node)?;
    let retaint = format!("{CONFIGURATION}  retaint: {{after: 24h}}\n");
    habitat.install(&retaint, &[]).await?;
    let rollout = [
        "rollout",
        "status",
        "daemonset/untaint",
        "--namespace=untaint",
        "--timeout=60s",
    ];
    habitat.cluster.kubectl(&rollout).await?;
    node.down()?;
    // A Node that is less than a minute older than the boot counts as made by it, because clocks differ.
    habitat
        .cluster
        .backdate_node(NAME, "2026-01-01T00:00:00Z")
        .await?;
    node.up().await?;
    timeline.say("switched off and on, with retaint");
    habitat
        .comes_true(
            "with retaint, the taint comes back after the boot, and not only after 24 hours",
            timeline.wait("the taint", tainted),
        )
        .await?;
    stand_in::create_app(habitat, "protected").await?;
    let waits = |world: &World| {
        let app = world.pods.get("default/protected");
        app.is_some_and(|app| condition(app, "PodScheduled") == "False")
    };
    let waits = timeline.wait("a pod that is not scheduled", waits);
    let sentence = "a pod waits for the network";
    habitat.comes_true(sentence, waits).await?;
    stand_in::go(&node)?;
    let answered = |world: &World| world.pod_is_ready("default/protected");
    let answered = timeline.wait("an answer", answered);
    let sentence = "the pod runs when the network works, and has its answer";
    habitat.comes_true(sentence, answered).await?;
    Ok(())
}

/// The seconds from 1970 to the boot of the node, as its processes see it.
fn boot_time(node: &Node) -> Result<u64> {
    let stat = node.run(&["cat", "/proc/stat"])?;
    let line = stat.lines().find_map(|line| line.strip_prefix("btime "));
    Ok(line.context("a time of the boot")?.trim().parse()?)
}
