use std::fs;
use std::time::{Duration, SystemTime};

use anyhow::{Context as _, Result};
use serde_json::json;

use crate::agent;
use crate::by_hand::{Network, configuration, key};
use crate::faults::{Fault, at_each_stage, rolled_out, rules, taint};
use crate::habitat::Habitat;
use crate::node::{NAME, Node};
use crate::timeline::World;

/// A rule that comes with a roll-out, and is changed in place.
const NEW: &str = "new";
const VOLUME: &str =
    "jsonpath={.spec.template.spec.volumes[?(@.name==\"untaint-config\")].configMap.name}";
const INVALID: &str = "the configuration file is invalid; continuing with the active configuration";

pub(super) async fn run(habitat: &mut Habitat) -> Result<()> {
    let network = Network::new().await?;
    let rules = rules(&[Fault::Rollout], &network);
    habitat.install(&configuration(&rules), &[]).await?;
    let mut node = habitat.node(&[])?;
    node.up().await?;
    agent::ready().await?;
    at_each_stage(Fault::Rollout, habitat, &node, &network).await?;

    let old = config_map(habitat).await?;
    let with = |seconds| {
        let new = network.rule(NEW, Duration::from_secs(seconds));
        configuration(&[&rules[..], &[new]].concat())
    };
    habitat.install(&with(0), &[]).await?;
    rolled_out(habitat).await?;
    let name = config_map(habitat).await?;
    habitat.expect("another configuration is another ConfigMap", name != old);
    let sentence = "after the roll-out, the new rule removes its taint";
    habitat.comes_true(sentence, lifetime(habitat)).await?;

    let from = SystemTime::now();
    change(habitat, &name, &with(3)).await?;
    agent::status("a reload", |status| status["configuration"]["reloads"] == 1).await?;
    habitat.measured("from a change in place to its effect", from.elapsed()?);
    habitat.expect(
        "a change in place takes effect in the same pod",
        lifetime(habitat).await? >= Duration::from_secs(3),
    );

    let bad = with(3).replace("stableFor: 3s", "stableFor: never");
    change(habitat, &name, &bad).await?;
    let failing = agent::status("a bad configuration", |status| {
        status["configuration"]["failing"] == true
    });
    let failing = failing.await?;
    let message = &failing["configuration"]["lastFailure"]["message"];
    let message = message.as_str().unwrap_or_default();
    habitat.timeline.say(message);
    habitat.expect(
        "/statusz has the field with the mistake",
        message.contains("stableFor"),
    );
    habitat.expect("the log has it too", log(&node)?.contains(INVALID));
    let (code, body) = agent::readiness().await.context("an answer")?;
    habitat.expect(
        "/readyz answers 503 with it",
        code == 503 && body.contains("stableFor"),
    );
    let unready = |world: &World| !world.pod_is_ready("untaint/");
    habitat
        .timeline
        .wait("the pod is not ready", unready)
        .await?;
    habitat.expect(
        "the last good configuration stays active",
        lifetime(habitat).await? >= Duration::from_secs(3),
    );
    change(habitat, &name, &with(0)).await?;
    agent::ready().await?;
    lifetime(habitat).await?;
    habitat.expect(
        "the next good configuration is active without a restart",
        true,
    );
    Ok(())
}

/// The name of the ConfigMap that the pods mount.
async fn config_map(habitat: &Habitat) -> Result<String> {
    let daemon_set = ["get", "daemonset", "untaint", "--namespace=untaint"];
    let name = [&daemon_set[..], &["--output", VOLUME]].concat();
    habitat.cluster.kubectl(&name).await
}

/// Changes the ConfigMap in place.
async fn change(habitat: &Habitat, name: &str, configuration: &str) -> Result<()> {
    let patch = json!({"data": {"config.yaml": configuration}}).to_string();
    let patch = [
        "patch",
        "configmap",
        name,
        "--namespace=untaint",
        "--patch",
        &patch,
    ];
    habitat.cluster.kubectl(&patch).await?;
    Ok(())
}

/// Puts the taint of the new rule on the Node, and returns how long it stays.
async fn lifetime(habitat: &Habitat) -> Result<Duration> {
    let tainted = |world: &World| world.has_taint(NAME, &key(NEW));
    let gone = |world: &World| world.lacks_taint(NAME, &key(NEW));
    let from = SystemTime::now();
    taint(habitat, NEW).await?;
    let timeline = &habitat.timeline;
    timeline
        .wait("the taint is there", |_| {
            timeline.when_after(from, tainted).is_some()
        })
        .await?;
    timeline.wait("the taint is gone", gone).await?;
    Ok(from.elapsed()?)
}

/// What all pods of untaint have logged.
fn log(node: &Node) -> Result<String> {
    let mut text = String::new();
    for pod in fs::read_dir(node.path("/var/log/pods")?)? {
        let container = pod?.path().join("untaint");
        for file in fs::read_dir(container).into_iter().flatten() {
            text += &fs::read_to_string(file?.path())?;
        }
    }
    Ok(text)
}
