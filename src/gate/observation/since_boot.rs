//! What of the API's objects was written since this boot. Pure.
//!
//! A reboot leaves the API as it was: the Node is Ready, its resources are there and its pods run, until the kubelet of
//! this boot says otherwise. So what was written before the boot is no evidence.
//!
//! Clocks alone cannot tell: where a machine boots with a wrong clock, what is written before the clock is set seems to
//! be from before the boot. So a write that is seen counts whatever its times are, and so does what once counted.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use k8s_openapi::api::core::v1::NodeCondition;

use crate::boot::{self, Span};
use crate::node::view::NodeView;

/// The conditions that the kubelet writes, all together with each report (kubelet `nodestatus/setters.go`).
const OF_THE_KUBELET: [&str; 4] = ["Ready", "MemoryPressure", "DiskPressure", "PIDPressure"];

/// A kubelet that has reported for so long has also written the status of every pod: it syncs each pod once a minute,
/// and sends what differs from the API every 10 s (kubelet `status/status_manager.go`).
const PODS_SYNCED_AFTER: Duration = Duration::from_mins(10);

/// What is known of the Node's status.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SinceBoot {
    /// Why all that the kubelet writes is unknown; `None` once it has reported.
    pub kubelet: Option<String>,
    /// The conditions that were last written before this boot, by type, each with how that is known.
    pub leftovers: BTreeMap<String, String>,
    /// Whether the kubelet has written the status of every pod.
    pub pods_synced: bool,
}

/// How it is known that something was written since the boot.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Proof {
    /// It is not known.
    #[default]
    None,
    /// By its times.
    Clock,
    /// It was seen to be written.
    Write,
}

/// Follows something that has the times of its writes.
#[derive(Debug, Default)]
pub(super) struct Witness {
    times: Vec<Timestamp>,
    proof: Proof,
}

impl Witness {
    /// Looks at the times that it has now. What has been proven once stays proven when the clock is set.
    pub(super) fn see(&mut self, times: Vec<Timestamp>, span: Option<Span>) -> Proof {
        // The first look shows no write: what it finds may be old.
        if !self.times.is_empty() && !times.is_empty() && self.times != times {
            self.proof = Proof::Write;
        }
        if span.is_some_and(|span| times.iter().any(|time| span.has(*time))) {
            self.proof = self.proof.max(Proof::Clock);
        }
        self.times = times;
        self.proof
    }
}

/// Follows the Node.
#[derive(Debug)]
pub struct NodeWitness {
    /// Of this boot; `None` where it cannot be read.
    boot_id: Option<String>,
    uid: String,
    resource_version: u64,
    kubelet: Witness,
    conditions: BTreeMap<String, Witness>,
    /// Since when it is known that the kubelet has reported.
    reported_at: Option<Instant>,
}

impl NodeWitness {
    /// `boot_id`: see [`boot::id`].
    pub fn new(boot_id: Option<String>) -> Self {
        Self {
            boot_id,
            uid: String::new(),
            resource_version: 0,
            kubelet: Witness::default(),
            conditions: BTreeMap::new(),
            reported_at: None,
        }
    }

    /// Looks at the newest Node.
    pub fn see(&mut self, node: &NodeView, span: Option<Span>, now: Instant) -> SinceBoot {
        let metadata = &node.metadata;
        // What was seen of another Node, or of one that a backup has replaced, is not about this one.
        if metadata.uid != self.uid || metadata.resource_version < self.resource_version {
            *self = Self::new(self.boot_id.take());
            self.uid.clone_from(&metadata.uid);
        }
        self.resource_version = metadata.resource_version;
        let kubelet = self.kubelet(node, span, now).err();
        let leftovers = self.leftovers(node, span);
        let lasts = self.kubelet.proof == Proof::Write;
        let synced_at = self.reported_at.map(|since| since + PODS_SYNCED_AFTER);
        SinceBoot {
            pods_synced: lasts && synced_at.is_some_and(|synced_at| synced_at <= now),
            kubelet,
            leftovers,
        }
    }

    /// Whether the kubelet has reported since this boot. A Node without a report gives nothing to judge by.
    fn kubelet(&mut self, node: &NodeView, span: Option<Span>, now: Instant) -> Result<(), String> {
        const NO_REPORT: &str = "the kubelet has not reported since this boot";
        let heartbeat = last_heartbeat(&node.conditions);
        let proof = self.kubelet.see(heartbeat.into_iter().collect(), span);
        let reported = || boot::is_id(&node.boot_id).then_some(&node.boot_id);
        let ids = self.boot_id.as_ref().zip(reported());
        // In some containers (LXC, systemd-nspawn) a kubelet is shown an id of its own. A report that is seen is none of
        // an earlier boot.
        if proof < Proof::Write
            && let Some((id, reported)) = ids.filter(|(id, other)| !id.eq_ignore_ascii_case(other))
        {
            return Err(format!(
                "{NO_REPORT}: the Node has boot ID {reported}, and this boot is {id}"
            ));
        }
        if let Some(heartbeat) = heartbeat.filter(|_| proof == Proof::None) {
            let when = when(span, heartbeat);
            return Err(format!("{NO_REPORT}: its last heartbeat is {when}"));
        }
        if heartbeat.is_some() {
            self.reported_at.get_or_insert(now);
        }
        Ok(())
    }

    fn leftovers(&mut self, node: &NodeView, span: Option<Span>) -> BTreeMap<String, String> {
        let mut known = std::mem::take(&mut self.conditions);
        let mut leftovers = BTreeMap::new();
        for condition in &node.conditions {
            let times = times(condition);
            let last = times.iter().max().copied();
            let mut witness = known.remove(&condition.type_).unwrap_or_default();
            let proof = witness.see(times, span);
            if let Some(last) = last.filter(|_| proof == Proof::None) {
                leftovers.insert(condition.type_.clone(), when(span, last));
            }
            self.conditions.insert(condition.type_.clone(), witness);
        }
        leftovers
    }
}

/// The newest heartbeat of the kubelet.
fn last_heartbeat(conditions: &[NodeCondition]) -> Option<Timestamp> {
    let of_the_kubelet = conditions
        .iter()
        .filter(|condition| is_of_the_kubelet(condition));
    let heartbeats =
        of_the_kubelet.filter_map(|condition| Some(condition.last_heartbeat_time.as_ref()?.0));
    heartbeats.max()
}

/// When a condition was written, by itself. Where a kubelet is silent, the node controller writes its conditions, with a
/// new transition and the old heartbeat: that is no report.
fn times(condition: &NodeCondition) -> Vec<Timestamp> {
    let transition = condition.last_transition_time.as_ref();
    let transition = transition.filter(|_| !is_of_the_kubelet(condition));
    let heartbeat = condition.last_heartbeat_time.as_ref();
    heartbeat
        .into_iter()
        .chain(transition)
        .map(|time| time.0)
        .collect()
}

fn is_of_the_kubelet(condition: &NodeCondition) -> bool {
    OF_THE_KUBELET.contains(&condition.type_.as_str())
}

/// When something was written, and why that is not since this boot.
pub(super) fn when(span: Option<Span>, time: Timestamp) -> String {
    match span {
        Some(Span { boot, .. }) if time < boot => {
            format!("of {time:.0}, before the boot at {boot:.0}")
        }
        Some(Span { boot, now }) => {
            format!("of {time:.0}, a time to come: now is {now:.0}, and the boot was at {boot:.0}")
        }
        None => format!("of {time:.0}, and the boot time is unknown"),
    }
}

#[cfg(test)]
mod tests;
