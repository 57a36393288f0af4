//! The same taint under `taints` and under `startupTaints` of a NodePool.

use anyhow::{Context as _, Result};
use serde_json::Value;

use super::history::{History, State, condition, current, has, is, of};
use super::machines::{Machine, become_ready};
use super::program::{Karpenter, pod, pool};
use crate::habitat::Habitat;

const TAINT: &str = "example.com/not-ready:NoSchedule";
/// A taint that somebody else gives a Node.
const UNLISTED: &str = "readiness.k8s.io/network:NoSchedule";
/// An annotation of a NodeClaim: of the specification of its NodePool when Karpenter launched it.
const HASH: &str = "karpenter.sh/nodepool-hash";

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
    let sentence = "when untaint has removed the taint, the ordinary pod is scheduled to the Node";
    let scheduled = on_node(habitat, "ordinary", node);
    habitat.comes_true(sentence, scheduled).await?;
    cluster.apply(&pod("more", "600m", "")).await?;
    said(habitat, events, "FailedScheduling", "more").await?;
    habitat.expect(
        "Karpenter launches no machine for the next ordinary pod",
        current(&claims.states()).len() == 1,
    );
    is_judged_again(habitat, claims).await?;
    Ok(node.to_owned())
}

/// Makes Karpenter judge the only machine, whose Node has lost its taint: it is drifted while its hash is not that of its
/// pool. When the hash is right again, only another reason could keep it drifted.
async fn is_judged_again(habitat: &Habitat, claims: &History) -> Result<()> {
    let states = claims.states();
    let (claim, object) = current(&states).pop_first().context("a NodeClaim")?;
    let hash = object["metadata"]["annotations"][HASH].as_str();
    let hash = hash.context("a hash")?;
    let set = async |hash: &str| {
        let annotation = format!("{HASH}={hash}");
        let words = ["annotate", "--overwrite", "nodeclaim", claim, &annotation];
        habitat.cluster.kubectl(&words).await
    };
    set("other").await?;
    let drifted = |claim: &Value| is_drifted(claim);
    claims.until_all("a drifted machine", 1, drifted).await?;
    set(hash).await?;
    let judged = claims.until_all("no drifted machine", 1, |claim| !is_drifted(claim));
    let sentence = "Karpenter does not count the absence of the taint as drift";
    habitat.comes_true(sentence, judged).await?;
    Ok(())
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
    let drifted = claims.until("a drifted machine", |states| {
        current(states).into_values().any(is_drifted).then_some(())
    });
    let sentence = "the older machine is drifted, because its pool has changed";
    habitat.comes_true(sentence, drifted).await?;

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
    let waiting = waits(claims, "StartupTaintsExist", TAINT);
    let sentence = "Karpenter waits for a taint that is under startupTaints";
    habitat.comes_true(sentence, waiting).await?;
    let machine = Machine::start_agent(habitat, second, &[TAINT, UNLISTED]).await?;
    machine.open(TAINT)?;
    let waiting = waits(claims, "KnownEphemeralTaintsExist", UNLISTED);
    let sentence = "Karpenter also waits for a taint under readiness.k8s.io that no NodePool names";
    habitat.comes_true(sentence, waiting).await?;
    machine.open(UNLISTED)?;
    let scheduled = on_node(habitat, "more", second);
    let sentence = "when untaint has removed both, the pod is scheduled";
    habitat.comes_true(sentence, scheduled).await?;
    let initialized = nodes.until_all("both Nodes", 2, |node| is(node, "initialized"));
    let sentence = "when untaint has removed both, the Node is initialized";
    habitat.comes_true(sentence, initialized).await?;

    // Karpenter has handled several changes of the first machine, and then all of the second.
    let states = nodes.states();
    let mut without = of(&states, first)
        .skip_while(|state| !is(&state.object, "initialized"))
        .skip_while(|state| has(&state.object, TAINT));
    habitat.expect(
        "Karpenter has not put back the taint of the first Node",
        without.all(|state| !has(&state.object, TAINT)),
    );
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

fn is_drifted(claim: &Value) -> bool {
    condition(claim, "Drifted")[0] == "True"
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
