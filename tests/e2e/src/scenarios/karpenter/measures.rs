//! Numbers of a run.

use std::collections::BTreeMap;
use std::time::{Duration, SystemTime};

use anyhow::Result;
use jiff::Timestamp;

use super::history::{State, condition, current, is, of};
use super::machines::Machine;
use crate::habitat::Habitat;

/// Prints the times from an open gate to the answer of the API server to the PATCH, by the audit log, whose times are from
/// the same clock.
pub(super) async fn tell_removals(
    habitat: &Habitat,
    opened: &BTreeMap<&str, SystemTime>,
) -> Result<()> {
    let mut times = Vec::new();
    for entry in habitat
        .cluster
        .requests(|entry| entry.verb == "patch")
        .await?
    {
        let node = entry.node.unwrap_or_default();
        let answered: Timestamp = entry.answered.parse()?;
        let opened = opened.get(node.as_str());
        let time = opened.and_then(|from| SystemTime::from(answered).duration_since(*from).ok());
        times.extend(time);
    }
    tell(habitat, "an open gate → the answer to the PATCH", times);
    Ok(())
}

/// Prints the times from an open gate to Karpenter's label `initialized`.
pub(super) fn tell_initializations(
    habitat: &Habitat,
    states: &[State],
    opened: &BTreeMap<&str, SystemTime>,
) {
    let times = opened.iter().filter_map(|(name, from)| {
        let found = of(states, name).find(|state| is(&state.object, "initialized"))?;
        found.at.duration_since(*from).ok()
    });
    let what = "an open gate → Karpenter's label is on the Node";
    tell(habitat, what, times.collect());
}

/// Prints the median and the longest.
fn tell(habitat: &Habitat, what: &str, mut times: Vec<Duration>) {
    times.sort();
    if let [.., longest] = times[..] {
        let median = times[times.len() / 2];
        habitat.measured(&format!("{what}, median of {}", times.len()), median);
        habitat.measured(&format!("{what}, longest"), longest);
    }
}

/// Judges and prints how many requests an agent sends. Two of its gates open before Karpenter has registered its Node, and
/// the third later. So two taints are due at the same time, except on a hurried machine: a taint that comes back has its
/// gate evaluated afresh, and is due a little later.
pub(super) async fn expect_requests(
    habitat: &Habitat,
    hurried: &[Machine],
    patient: &[Machine],
) -> Result<()> {
    let mut agents: BTreeMap<String, BTreeMap<String, usize>> = BTreeMap::new();
    for entry in habitat
        .cluster
        .requests(|entry| entry.node.is_some())
        .await?
    {
        let kind = format!("{} {}", entry.verb, entry.code.unwrap_or_default());
        *agents
            .entry(entry.node.unwrap_or_default())
            .or_default()
            .entry(kind)
            .or_default() += 1;
    }
    let count = |machine: &Machine, kind: &str| {
        let requests = agents.get(&machine.name);
        requests.and_then(|requests| requests.get(kind)).copied()
    };
    let mut machines = hurried.iter().chain(patient);
    habitat.expect(
        "each agent sends one watch",
        machines.all(|machine| count(machine, "watch 200") == Some(1)),
    );
    let patches = |machine: &Machine| count(machine, "patch 200");
    habitat.expect(
        "an agent removes two taints that are due at the same time with one PATCH, and the third with another",
        patient.iter().all(|machine| patches(machine) == Some(2)),
    );
    habitat.expect(
        "an agent sends at most one PATCH more when Karpenter has put back what the script has removed",
        hurried.iter().all(|machine| matches!(patches(machine), Some(2 | 3))),
    );
    let mut kinds: BTreeMap<String, usize> = BTreeMap::new();
    for requests in agents.values() {
        let requests: Vec<_> = requests
            .iter()
            .map(|(kind, count)| format!("{count} × {kind}"))
            .collect();
        *kinds.entry(requests.join(", ")).or_default() += 1;
    }
    for (requests, agents) in kinds {
        habitat
            .timeline
            .say(&format!("requests of {agents} agents, each: {requests}"));
    }
    Ok(())
}

/// Prints what Karpenter's condition `Initialized` has said, in order.
pub(super) fn tell_steps(habitat: &Habitat, states: &[State]) {
    let mut kinds: BTreeMap<String, usize> = BTreeMap::new();
    for name in current(states).keys() {
        let mut steps: Vec<String> = Vec::new();
        for state in of(states, name) {
            let [value, reason, message] = condition(&state.object, "Initialized");
            let step = match (value, message.split('"').nth(1)) {
                ("True", _) => value.to_owned(),
                (_, Some(taint)) => format!("{reason} {taint}"),
                _ => reason.to_owned(),
            };
            if !step.is_empty() && steps.last() != Some(&step) {
                steps.push(step);
            }
        }
        *kinds.entry(steps.join(" → ")).or_default() += 1;
    }
    for (steps, claims) in kinds {
        habitat
            .timeline
            .say(&format!("Initialized of {claims} NodeClaims: {steps}"));
    }
}
