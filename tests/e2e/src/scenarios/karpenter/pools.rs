//! The same taint under `taints` and under `startupTaints` of a NodePool.

use anyhow::{Context as _, Result};
use serde_json::Value;

use super::history::{History, State, condition, current, has, is};
use super::machines::{Machine, become_ready};
use super::program::{Karpenter, pod, pool};
use crate::habitat::Habitat;

const TAINT: &str = "example.com/not-ready:NoSchedule";
/// A taint that somebody else gives a Node.
const UNLISTED: &str = "readiness.k8s.io/network:NoSchedule";

/// The specification of the Nodes with the taint under this field.
fn under(field: &str) -> String {
    pool(
        "0s",
        &format!("      {field}: [{{key: example.com/not-ready, effect: NoSchedule}}]\n"),
    )
}

pub(in super::super) async fn run(habitat: &mut Habitat) -> Result<()> {
    let karpenter = Karpenter::start(habitat).await?;
    let events = History::of(
        habitat.cluster.client().await?,
        "/api/v1/namespaces/default/events",
    )?;
    let first = under_taints(habitat, &karpenter, &events).await?;
    under_startup_taints(habitat, &karpenter, &events, &first).await?;
    karpenter.clear(habitat).await
}

/// Returns the name of the only Node.
async fn under_taints(
    habitat: &Habitat,
    karpenter: &Karpenter,
    events: &History,
) -> Result<String> {
    let (cluster, nodes, claims) = (&habitat.cluster, &karpenter.nodes, &karpenter.claims);
    cluster.apply(&under("taints")).await?;
    let ready = [
        "wait",
        "--for=condition=Ready",
        "nodepool/pool",
        "--timeout=60s",
    ];
    cluster.kubectl(&ready).await?;
    cluster.apply(&pod("ordinary", "600m", "")).await?;
    let message = said(habitat, events, "FailedScheduling", "ordinary").await?;
    let refused = message.contains(&format!("did not tolerate taint (taint={TAINT})"));
    habitat.expect(
        "under taints, Karpenter launches no machine for an ordinary pod",
        refused && claims.states().is_empty(),
    );

    let tolerates = "{key: example.com/not-ready, operator: Exists}";
    cluster.apply(&pod("tolerant", "100m", tolerates)).await?;
    let what = "the Node for a pod that tolerates the taint is registered";
    nodes
        .until_all(what, 1, |node| is(node, "registered"))
        .await?;
    let states = nodes.states();
    let node = *current(&states).keys().next().context("a Node")?;
    become_ready(habitat, &[node]).await?;
    nodes
        .until_all("the Node is initialized", 1, |node| is(node, "initialized"))
        .await?;
    let states = nodes.states();
    let initialized = states.iter().find(|state| is(&state.object, "initialized"));
    habitat.expect(
        "Karpenter does not wait for a taint that is under taints",
        initialized.is_some_and(|state| has(&state.object, TAINT)),
    );

    let machine = Machine::start_agent(habitat, node, &[TAINT]).await?;
    machine.open(TAINT)?;
    on_node(habitat, "ordinary", node).await?;
    habitat.expect(
        "when untaint has removed the taint, the ordinary pod is scheduled to the Node",
        true,
    );
    cluster.apply(&pod("more", "600m", "")).await?;
    said(habitat, events, "FailedScheduling", "more").await?;
    habitat.expect(
        "Karpenter launches no machine for the next ordinary pod",
        current(&claims.states()).len() == 1,
    );
    let states = nodes.states();
    let mut removed = states
        .iter()
        .skip_while(|state| !is(&state.object, "initialized"))
        .skip_while(|state| has(&state.object, TAINT));
    habitat.expect(
        "Karpenter does not put the taint back",
        removed.all(|state| !has(&state.object, TAINT)),
    );
    habitat.expect(
        "Karpenter does not count the absence of the taint as drift",
        !claims.states().iter().any(is_drifted),
    );
    Ok(node.to_owned())
}

async fn under_startup_taints(
    habitat: &Habitat,
    karpenter: &Karpenter,
    events: &History,
    first: &str,
) -> Result<()> {
    let (cluster, nodes, claims) = (&habitat.cluster, &karpenter.nodes, &karpenter.claims);
    cluster.apply(&under("startupTaints")).await?;
    habitat.timeline.say("the taint is moved to startupTaints");
    let message = said(habitat, events, "Nominated", "more").await?;
    habitat.expect(
        "under startupTaints, Karpenter launches a machine for an ordinary pod",
        message.contains("nodeclaim/"),
    );
    claims
        .until("a machine is drifted", |states| {
            states.iter().any(is_drifted).then_some(())
        })
        .await?;
    habitat.expect(
        "the older machine is drifted, because its pool has changed",
        true,
    );

    nodes
        .until_all("the second Node is registered", 2, |node| {
            is(node, "registered")
        })
        .await?;
    let states = nodes.states();
    let second = *current(&states)
        .keys()
        .find(|name| **name != first)
        .context("a second Node")?;
    cluster
        .kubectl(&["taint", "node", second, UNLISTED])
        .await?;
    become_ready(habitat, &[second]).await?;
    waits(claims, "StartupTaintsExist", TAINT).await?;
    habitat.expect(
        "Karpenter waits for a taint that is under startupTaints",
        true,
    );
    let machine = Machine::start_agent(habitat, second, &[TAINT, UNLISTED]).await?;
    machine.open(TAINT)?;
    waits(claims, "KnownEphemeralTaintsExist", UNLISTED).await?;
    let what = "Karpenter also waits for a taint under readiness.k8s.io that no NodePool names";
    habitat.expect(what, true);
    machine.open(UNLISTED)?;
    on_node(habitat, "more", second).await?;
    let what = "both Nodes are initialized";
    nodes
        .until_all(what, 2, |node| is(node, "initialized"))
        .await?;
    let what = "when untaint has removed both, the pod is scheduled, and the Node is initialized";
    habitat.expect(what, true);
    Ok(())
}

/// Waits until Karpenter says of a machine that it waits for this taint.
async fn waits(claims: &History, reason: &str, taint: &str) -> Result<()> {
    let waits = |claim: &&Value| {
        let [_, why, message] = condition(claim, "Initialized");
        why == reason && message.contains(taint)
    };
    let found = |states: &[State]| current(states).into_values().find(waits).map(|_| ());
    claims.until(&format!("{reason} for {taint}"), found).await
}

fn is_drifted(claim: &State) -> bool {
    condition(&claim.object, "Drifted")[0] == "True"
}

async fn on_node(habitat: &Habitat, pod: &str, node: &str) -> Result<()> {
    let name = format!("default/{pod}");
    let what = format!("{pod} is scheduled");
    habitat
        .timeline
        .until(&what, |world| {
            (world.pods.get(&name)?["spec"]["nodeName"] == node).then_some(())
        })
        .await
}

/// Waits for Karpenter's Event of this reason about a pod, and returns its message.
async fn said(habitat: &Habitat, events: &History, reason: &str, pod: &str) -> Result<String> {
    let message = events
        .until(&format!("{reason} of {pod}"), |states| {
            let mut events = states.iter().map(|state| &state.object);
            let found = events.find(|event| {
                event["source"]["component"] == "karpenter"
                    && event["reason"] == reason
                    && event["involvedObject"]["name"] == pod
            });
            Some(found?["message"].as_str()?.to_owned())
        })
        .await?;
    habitat
        .timeline
        .say(&format!("Karpenter about the pod {pod}: {message}"));
    Ok(message)
}
