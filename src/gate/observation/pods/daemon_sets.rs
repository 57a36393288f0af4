//! DaemonSets that must be ready on this node, judged by their pods here. Nothing looks at the DaemonSets themselves: their
//! status changes with each pod of the cluster, and each agent would receive each change.

mod departures;

use std::collections::BTreeMap;

use super::super::Judgement;
use super::Known;
use super::pod::{DaemonSetId, Pod, Pods, newest};
use crate::config::{self, shown_duration};
use crate::gate::Outcome;
use crate::text::printable;
pub(in crate::gate::observation) use departures::Departures;
use departures::WAIT;

/// The most DaemonSets that a message describes.
const DESCRIBED: usize = 5;
/// The longest name in a message, in characters.
const NAME: usize = 63;

/// A DaemonSet on this node. Each state that needs attention has words about a pod.
enum State {
    Ready,
    NotReady(String),
    /// No pod of it is here.
    Missing(String),
    /// What is known of it is from before this boot, or its next pod may be about to come.
    Unknown(String),
    /// It cannot be ready before the taint is gone.
    LeftOut(String),
}

/// The descriptions of the DaemonSets in each state.
#[derive(Default)]
struct Found {
    ready: usize,
    not_ready: Vec<String>,
    is_missing: bool,
    unknown: Vec<String>,
    left_out: Vec<String>,
}

pub(super) fn judge(
    expected: &config::Pods,
    pods: &Pods,
    known: &Known<'_>,
    departures: &mut Departures,
) -> Judgement {
    let is_named = |id: &DaemonSetId| expected.daemon_sets.contains(&id.name);
    let mut sets: BTreeMap<DaemonSetId, Vec<&Pod>> = BTreeMap::new();
    for pod in pods.values() {
        if let Some(id) = pod.daemon_set()
            && (expected.every || is_named(&id))
        {
            sets.entry(id).or_default().push(pod);
        }
    }
    departures.update(known, &sets, |id, pods| {
        is_named(id) || left_out(pods, known).is_none()
    });
    let mut found = Found::default();
    for (id, pods) in &mut sets {
        pods.sort_by_key(|pod| &pod.metadata.name);
        if let Some(newest) = newest(pods.iter().copied()) {
            found.add(state(is_named(id), newest, pods, known));
        }
    }
    let has_pod = |name: &String| sets.keys().any(|id| id.name == *name);
    let missing = expected.daemon_sets.iter().filter(|name| !has_pod(name));
    for name in missing {
        let name = printable(name, NAME);
        found.add(State::Missing(format!("{name} has no pod")));
    }
    // With a gate that is closed, the rule could put its taint back on each node of a DaemonSet that was deleted for good.
    let gone = departures.gone();
    for (id, since) in gone.filter(|(id, _)| !is_named(id) || has_pod(&id.name)) {
        found.add(State::Unknown(format!(
            "{} has had no pod since {since:.0}, and untaint waits {} for its next one",
            printable(&id.name, NAME),
            shown_duration(WAIT)
        )));
    }
    Judgement {
        outcome: found.outcome(expected, known),
        valid_for: departures.valid_for(known.now),
    }
}

/// Why a DaemonSet that is not named is not waited for.
fn left_out(pods: &[&Pod], known: &Known<'_>) -> Option<String> {
    waiting(pods, known).or_else(|| {
        let newest = newest(pods.iter().copied())?;
        Some(format!(
            "pod {} {}",
            short_name(newest),
            untolerated(newest, known)?
        ))
    })
}

fn waiting(pods: &[&Pod], known: &Known<'_>) -> Option<String> {
    let pod = pods.iter().find(|pod| known.is_waiting(pod))?;
    Some(format!(
        "pod {} waits until this untaint ends",
        short_name(pod)
    ))
}

/// Its controller creates no pod on a node with a taint that the pod does not tolerate (kube-controller-manager
/// `daemon_controller.go`, `NodeShouldRunDaemonPod`).
fn untolerated(pod: &Pod, known: &Known<'_>) -> Option<String> {
    let taint = known.taints.first()?;
    (!pod.tolerates(taint)).then(|| format!("does not tolerate {taint}"))
}

fn state(is_named: bool, newest: &Pod, pods: &[&Pod], known: &Known<'_>) -> State {
    if !is_named && let Some(words) = left_out(pods, known) {
        return State::LeftOut(words);
    }
    if let Some(words) = waiting(pods, known) {
        return State::NotReady(words);
    }
    let is_current = |pod: &&&Pod| pod.revision() == newest.revision();
    let is_going = |pod: &Pod| pod.is_terminating() || pod.has_ended();
    let counting = || {
        let current = pods.iter().filter(is_current);
        current.filter(|pod| !is_going(pod))
    };
    let fault = match counting().find(|pod| !pod.is_ready()) {
        Some(pod) => Some((*pod, "is not ready")),
        None if counting().next().is_some() => None,
        None if newest.is_terminating() => Some((newest, "is terminating")),
        None => Some((newest, "has ended")),
    };
    if let Some((pod, what)) = fault {
        let also = untolerated(newest, known).map(|words| format!(" and {words}"));
        let also = also.unwrap_or_default();
        return State::NotReady(format!("pod {} {what}{also}", short_name(pod)));
    }
    let doubt = counting().find_map(|pod| Some((pod, known.doubt(pod)?)));
    doubt.map_or(State::Ready, |(pod, doubt)| {
        State::Unknown(format!("pod {} {doubt}", short_name(pod)))
    })
}

impl Found {
    fn add(&mut self, state: State) {
        match state {
            State::Ready => self.ready += 1,
            State::NotReady(words) => self.not_ready.push(words),
            State::Missing(words) => {
                self.is_missing = true;
                self.not_ready.push(words);
            }
            State::Unknown(words) => self.unknown.push(words),
            State::LeftOut(words) => self.left_out.push(words),
        }
    }

    fn outcome(&self, expected: &config::Pods, known: &Known<'_>) -> Outcome {
        let namespace = &expected.namespace;
        let left_out = match self.left_out.as_slice() {
            [] => String::new(),
            left_out => format!("; not waited for: {}", listed(left_out)),
        };
        let total = self.ready + self.not_ready.len() + self.unknown.len();
        let sets = |count| format!("{count} of {total} DaemonSets in {namespace}");
        let has_labels = !expected.match_labels.is_empty();
        let labels = if has_labels { " with the labels" } else { "" };
        if total == 0 {
            return Outcome::Closed(format!(
                "no DaemonSet in {namespace} has a pod{labels} on this node{left_out}"
            ));
        }
        if !self.not_ready.is_empty() {
            let hint = if self.is_missing {
                let taints: Vec<_> = known.taints.iter().map(ToString::to_string).collect();
                format!(
                    "; a DaemonSet has a pod{labels} here only if it exists, selects this node and tolerates {}",
                    taints.join(" and ")
                )
            } else {
                String::new()
            };
            return Outcome::Closed(format!(
                "{} are not ready on this node: {}{hint}{left_out}",
                sets(self.not_ready.len()),
                listed(&self.not_ready)
            ));
        }
        if !self.unknown.is_empty() {
            return Outcome::Unknown(format!(
                "{} are not known to be ready on this node: {}{left_out}",
                sets(self.unknown.len()),
                listed(&self.unknown)
            ));
        }
        Outcome::Open(format!("{} are ready on this node{left_out}", sets(total)))
    }
}

/// The first descriptions, and how many there are more.
fn listed(descriptions: &[String]) -> String {
    let (first, rest) = descriptions.split_at(descriptions.len().min(DESCRIBED));
    let more = match rest.len() {
        0 => String::new(),
        count => format!(", and {count} more"),
    };
    format!("{}{more}", first.join(", "))
}

fn short_name(pod: &Pod) -> String {
    printable(&pod.metadata.name, NAME)
}

#[cfg(test)]
mod tests;
