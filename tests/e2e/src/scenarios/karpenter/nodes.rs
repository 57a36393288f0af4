//! Twenty Nodes of Karpenter at once, each with an agent. Karpenter judges: it counts a Node as initialized only when all
//! its `startupTaints` are gone, and puts those back that were removed before it had registered the Node.

use std::collections::{BTreeMap, BTreeSet};
use std::time::SystemTime;

use anyhow::Result;
use serde_json::Value;
use testkit::cluster::AuditEntry;

use super::history::{State, condition, current, has, is, of};
use super::machines::{Machine, become_ready, register};
use super::measures::{expect_requests, tell_initializations, tell_removals, tell_steps};
use super::program::{Karpenter, pod, pool};
use crate::habitat::Habitat;

const NODES: usize = 20;
/// The start-up taints, one rule each.
const NETWORK: &str = "network.example.com/not-ready:NoExecute";
const STORAGE: &str = "storage.example.com/not-ready=true:NoSchedule";
const DEVICE: &str = "device.example.com/not-ready:NoSchedule";
const STARTUP: [&str; 3] = [NETWORK, STORAGE, DEVICE];
/// A taint that the Nodes keep.
const PERMANENT: &str = "example.com/dedicated=e2e:NoSchedule";
const SPECIFICATION: &str = r#"
      taints:
      - {key: example.com/dedicated, value: e2e, effect: NoSchedule}
      startupTaints:
      - {key: network.example.com/not-ready, effect: NoExecute}
      - {key: storage.example.com/not-ready, value: "true", effect: NoSchedule}
      - {key: device.example.com/not-ready, effect: NoSchedule}
"#;
const HOLDING: &str = "holding: Karpenter has not registered the node yet";

pub(in super::super) async fn run(habitat: &mut Habitat) -> Result<()> {
    let karpenter = Karpenter::start(habitat).await?;
    launch(habitat, &karpenter).await?;
    // The time from the Node to its registration is milliseconds here, and can be minutes elsewhere.
    karpenter.pause()?;
    let machines = boot(habitat, &karpenter).await?;
    let (hurried, patient) = machines.split_at(NODES / 2);
    remove_by_hand(habitat, hurried).await?;
    karpenter.resume()?;
    are_registered(habitat, &karpenter, hurried, patient).await?;
    are_initialized(habitat, &karpenter, hurried, patient).await?;
    are_used(habitat, &karpenter).await?;
    let sentence = "Karpenter deletes the Nodes while the agents run";
    habitat.comes_true(sentence, karpenter.clear(habitat)).await
}

/// Lets Karpenter launch a machine for each of some pods.
async fn launch(habitat: &Habitat, karpenter: &Karpenter) -> Result<()> {
    // KWOK would create the Nodes itself, after this time.
    habitat.cluster.apply(&pool("1h", SPECIFICATION)).await?;
    let tolerates = "{key: example.com/dedicated, operator: Exists}";
    let pods: Vec<String> = (0..NODES)
        .map(|index| pod(&format!("pod-{index}"), "600m", tolerates))
        .collect();
    habitat.cluster.apply(&pods.concat()).await?;
    let launched = |claim: &Value| condition(claim, "Launched")[0] == "True";
    let what = "Karpenter has launched a machine for each pod";
    karpenter.claims.until_all(what, NODES, launched).await?;
    habitat.timeline.say(what);
    Ok(())
}

/// Lets the machines register their Nodes, and starts their agents, each with two open gates and a closed one.
async fn boot(habitat: &Habitat, karpenter: &Karpenter) -> Result<Vec<Machine>> {
    let launched = karpenter.claims.states();
    let claims: Vec<_> = current(&launched).into_values().collect();
    register(habitat, &claims, &STARTUP).await?;
    let nodes = &karpenter.nodes;
    nodes.until_all("the Nodes", NODES, |_| true).await?;
    let mut machines = Vec::new();
    for name in current(&nodes.states()).keys() {
        let machine = Machine::start_agent(habitat, name, &STARTUP).await?;
        machine.open(NETWORK)?;
        machine.open(STORAGE)?;
        machines.push(machine);
    }
    for machine in &machines {
        machine.agent.wait_for_count(HOLDING, 2).await?;
    }
    let timeline = &habitat.timeline;
    timeline.say("each machine has two open gates, and its agent holds the removals");
    Ok(machines)
}

/// Removes a start-up taint as people's scripts do.
async fn remove_by_hand(habitat: &Habitat, machines: &[Machine]) -> Result<()> {
    let removal = format!("{NETWORK}-");
    let names = machines.iter().map(|machine| machine.name.as_str());
    let script: Vec<&str> = ["taint", "nodes"]
        .into_iter()
        .chain(names)
        .chain([&*removal])
        .collect();
    habitat.cluster.kubectl(&script).await?;
    habitat
        .timeline
        .say("a script has removed a start-up taint from half of the Nodes");
    let is_write = |entry: &AuditEntry| entry.verb == "patch" && entry.node.is_some();
    let written = habitat.cluster.requests(is_write).await?;
    habitat.expect(
        "no agent writes before Karpenter has registered its Node",
        written.is_empty(),
    );
    Ok(())
}

async fn are_registered(
    habitat: &Habitat,
    karpenter: &Karpenter,
    hurried: &[Machine],
    patient: &[Machine],
) -> Result<()> {
    let nodes = &karpenter.nodes;
    let what = "Karpenter has registered the Nodes, and the taints of the two open gates are gone";
    let removed =
        |node: &Value| is(node, "registered") && !has(node, NETWORK) && !has(node, STORAGE);
    nodes.until_all(what, NODES, removed).await?;
    habitat.timeline.say(what);
    let states = nodes.states();
    let restored = |machine: &Machine| is_restored(&states, &machine.name, NETWORK);
    habitat.expect(
        "Karpenter puts back what the script has removed",
        hurried.iter().all(restored),
    );
    let added = |machine: &Machine| is_restored(&states, &machine.name, PERMANENT);
    habitat.expect(
        "in the same way, Karpenter adds a taint under taints that the Node lacks",
        hurried.iter().chain(patient).all(added),
    );
    let held = |machine: &Machine| is_held(&states, &machine.name);
    habitat.expect(
        "what the agents hold stays until Karpenter has registered the Node",
        patient.iter().all(held),
    );
    let closed = current(&states).values().all(|node| has(node, DEVICE));
    habitat.expect("the taint of the closed gate stays", closed);
    Ok(())
}

/// The patient machines lose their last start-up taint before they are Ready, the hurried ones afterwards.
async fn are_initialized(
    habitat: &Habitat,
    karpenter: &Karpenter,
    hurried: &[Machine],
    patient: &[Machine],
) -> Result<()> {
    let (nodes, claims) = (&karpenter.nodes, &karpenter.claims);
    let opened = open_last(patient)?;
    nodes
        .until(
            "the last start-up taint is gone from half of the Nodes",
            |states| {
                let now = current(states);
                opened
                    .keys()
                    .all(|name| !has(now[name], DEVICE))
                    .then_some(())
            },
        )
        .await?;
    let names: Vec<&str> = hurried
        .iter()
        .chain(patient)
        .map(|machine| machine.name.as_str())
        .collect();
    become_ready(habitat, &names).await?;
    let half = claims.until("half of the NodeClaims", |states| {
        let now = current(states);
        let count = |wanted: fn(&Value) -> bool| now.values().filter(|claim| wanted(claim)).count();
        (count(is_initialized) == patient.len() && count(waits_for_last) == hurried.len())
            .then_some(())
    });
    let sentence =
        "a NodeClaim without start-up taints is initialized, one with a start-up taint is not";
    habitat.comes_true(sentence, half).await?;
    let opened = open_last(hurried)?;
    let all = claims.until_all("all NodeClaims", NODES, is_initialized);
    let sentence = "all NodeClaims are initialized when the last start-up taint is gone";
    habitat.comes_true(sentence, all).await?;
    nodes
        .until_all("the label of the Nodes", NODES, |node| {
            is(node, "initialized")
        })
        .await?;

    let states = nodes.states();
    let mut initialized = states
        .iter()
        .map(|state| &state.object)
        .filter(|node| is(node, "initialized"));
    let good = |node: &Value| {
        condition(node, "Ready")[0] == "True" && STARTUP.iter().all(|taint| !has(node, taint))
    };
    habitat.expect(
        "no Node is initialized in any state in which it has a start-up taint or is not Ready",
        initialized.all(good),
    );
    let mut registered = states
        .iter()
        .map(|state| &state.object)
        .filter(|node| is(node, "registered"));
    habitat.expect(
        "the taint that the pool gives its Nodes for ever stays",
        registered.all(|node| has(node, PERMANENT)),
    );
    let mut logs = hurried
        .iter()
        .chain(patient)
        .flat_map(|machine| machine.agent.logs());
    habitat.expect(
        "no agent has logged an error",
        logs.all(|line| line.is_object() && line["level"] != "ERROR"),
    );

    tell_removals(habitat, &opened).await?;
    tell_initializations(habitat, &states, &opened);
    expect_requests(habitat, hurried, patient).await?;
    tell_steps(habitat, &claims.states());
    Ok(())
}

/// The scheduler does what Karpenter has planned.
async fn are_used(habitat: &Habitat, karpenter: &Karpenter) -> Result<()> {
    habitat
        .timeline
        .until("each pod is on a Node", |world| {
            let pods = world.pods_like("default/pod-");
            let hosts: BTreeSet<_> = pods
                .filter_map(|pod| pod["spec"]["nodeName"].as_str())
                .collect();
            (hosts.len() == NODES).then_some(())
        })
        .await?;
    let states = karpenter.claims.states();
    let launched: BTreeSet<&str> = states.iter().map(State::name).collect();
    habitat.expect(
        "each pod is on a Node of its own, and Karpenter has launched no other machine",
        launched.len() == NODES,
    );
    Ok(())
}

fn is_initialized(claim: &Value) -> bool {
    condition(claim, "Initialized")[0] == "True"
}

fn waits_for_last(claim: &Value) -> bool {
    let [value, reason, message] = condition(claim, "Initialized");
    [value, reason] == ["Unknown", "StartupTaintsExist"] && message.contains(DEVICE)
}

/// Opens the last gate of these machines, and says when.
fn open_last(machines: &[Machine]) -> Result<BTreeMap<&str, SystemTime>> {
    machines
        .iter()
        .map(|machine| {
            let now = SystemTime::now();
            machine.open(DEVICE)?;
            Ok((machine.name.as_str(), now))
        })
        .collect()
}

/// Whether the Node was without this taint, and has it in the first state in which it is registered.
fn is_restored(states: &[State], name: &str, taint: &str) -> bool {
    let mut own = of(states, name).map(|state| &state.object);
    own.any(|node| !is(node, "registered") && !has(node, taint))
        && own
            .find(|node| is(node, "registered"))
            .is_some_and(|node| has(node, taint))
}

/// Whether the Node has all start-up taints until it is registered.
fn is_held(states: &[State], name: &str) -> bool {
    of(states, name)
        .filter(|state| !is(&state.object, "registered"))
        .all(|state| STARTUP.iter().all(|taint| has(&state.object, taint)))
}
