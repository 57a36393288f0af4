//! DaemonSets that must be ready on this node, judged by their pods here. Nothing looks at the DaemonSets themselves: their
//! status changes with each pod of the cluster, and each agent would receive each change.

use std::collections::BTreeMap;

use super::Known;
use super::pod::{Pod, Pods, newest};
use crate::config;
use crate::gate::Outcome;
use crate::text::printable;

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
    /// What is known of it is from before this boot.
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

pub(super) fn judge(expected: &config::Pods, pods: &Pods, known: &Known<'_>) -> Outcome {
    let names = expected.daemon_sets.iter();
    let mut sets: BTreeMap<&str, Vec<&Pod>> =
        names.map(|name| (name.as_str(), Vec::new())).collect();
    for pod in pods.values() {
        let Some(name) = pod.daemon_set() else {
            continue;
        };
        if expected.every {
            sets.entry(name).or_default().push(pod);
        } else if let Some(set) = sets.get_mut(name) {
            set.push(pod);
        }
    }
    let mut found = Found::default();
    for (name, mut pods) in sets {
        pods.sort_by_key(|pod| &pod.metadata.name);
        let is_named = expected.daemon_sets.iter().any(|named| named == name);
        match state(name, is_named, &pods, known) {
            State::Ready => found.ready += 1,
            State::NotReady(words) => found.not_ready.push(words),
            State::Missing(words) => {
                found.is_missing = true;
                found.not_ready.push(words);
            }
            State::Unknown(words) => found.unknown.push(words),
            State::LeftOut(words) => found.left_out.push(words),
        }
    }
    found.outcome(expected, known)
}

fn state(name: &str, is_named: bool, pods: &[&Pod], known: &Known<'_>) -> State {
    let Some(newest) = newest(pods.iter().copied()) else {
        return State::Missing(format!("{} has no pod", printable(name, NAME)));
    };
    if let Some(pod) = pods.iter().find(|pod| known.is_waiting(pod)) {
        let words = format!("pod {} waits until this untaint ends", short_name(pod));
        return if is_named {
            State::NotReady(words)
        } else {
            State::LeftOut(words)
        };
    }
    // Its controller creates no pod on a node with a taint that the pod does not tolerate (kube-controller-manager
    // `daemon_controller.go`, `NodeShouldRunDaemonPod`).
    let untolerated = known.taints.first();
    let untolerated = untolerated.filter(|taint| !newest.tolerates(taint));
    let untolerated = untolerated.map(|taint| format!("does not tolerate {taint}"));
    if let Some(words) = untolerated.as_ref().filter(|_| !is_named) {
        return State::LeftOut(format!("pod {} {words}", short_name(newest)));
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
        let also = untolerated.map(|words| format!(" and {words}"));
        let also = also.unwrap_or_default();
        return State::NotReady(format!("pod {} {what}{also}", short_name(pod)));
    }
    let doubt = counting().find_map(|pod| Some((pod, known.doubt(pod)?)));
    doubt.map_or(State::Ready, |(pod, doubt)| {
        State::Unknown(format!("pod {} {doubt}", short_name(pod)))
    })
}

impl Found {
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
