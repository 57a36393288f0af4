//! What in the API was written since this boot. Pure.
//!
//! A reboot does not change the API: the Node is Ready, it has its resources and its pods run, until the kubelet of this
//! boot writes otherwise. So a status from before the boot is no evidence.
//!
//! Times alone are not enough. Where a machine boots with a wrong clock, a write before the clock is set seems to be from
//! before the boot. So a write that the agent sees is evidence, and its times do not matter. Evidence stays evidence when
//! the clock is set.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use k8s_openapi::api::core::v1::NodeCondition;

use crate::boot::{self, Uptime, not_since};
use crate::node::view::NodeView;

/// The conditions that the kubelet writes, all together with each report (kubelet `nodestatus/setters.go`).
const KUBELET_CONDITIONS: [&str; 4] = ["Ready", "MemoryPressure", "DiskPressure", "PIDPressure"];

/// A kubelet that has reported for so long has also written the status of every pod: it syncs each pod once a minute,
/// and sends what differs from the API every 10 s (kubelet `status/status_manager.go`).
const PODS_SYNCED_AFTER: Duration = Duration::from_mins(10);

/// What in the Node's status was written since this boot.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NodeFreshness {
    /// Why the kubelet has not reported since this boot; `None` if it has. Without a report, all that it writes is unknown.
    pub no_report: Option<String>,
    /// The types of conditions that were last written before this boot, each with the time of that write.
    pub stale_conditions: BTreeMap<String, String>,
    /// Whether the kubelet has written the status of every pod since this boot.
    pub pods_synced: bool,
}

/// The evidence that something was written since the boot, from weak to strong.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
enum Evidence {
    #[default]
    None,
    /// Its times are since the boot.
    Times,
    /// The agent saw a write.
    Write,
}

/// Follows the times of one object's writes.
#[derive(Debug, Default)]
pub(super) struct WriteTracker {
    times: Vec<Timestamp>,
    evidence: Evidence,
}

impl WriteTracker {
    /// Compares the object's times with those of the last call. Returns the time of its last write if it is stale, which
    /// means that nothing shows a write since the boot. An object without times is not.
    pub(super) fn stale(
        &mut self,
        times: Vec<Timestamp>,
        uptime: Option<Uptime>,
    ) -> Option<String> {
        // The first call shows no write: what it finds may be old.
        if !self.times.is_empty() && !times.is_empty() && self.times != times {
            self.evidence = Evidence::Write;
        }
        if uptime.is_some_and(|uptime| times.iter().any(|time| uptime.contains(*time))) {
            self.evidence = self.evidence.max(Evidence::Times);
        }
        self.times = times;
        let last = self.times.iter().max()?;
        (self.evidence == Evidence::None).then(|| not_since(uptime, *last))
    }
}

/// Follows the writes to the Node.
#[derive(Debug, Default)]
pub struct FreshnessTracker {
    /// Of this boot; `None` where it cannot be read.
    boot_id: Option<String>,
    uid: String,
    resource_version: u64,
    kubelet: WriteTracker,
    conditions: BTreeMap<String, WriteTracker>,
    /// When the agent first knew that the kubelet has reported.
    reported_at: Option<Instant>,
}

impl FreshnessTracker {
    /// `boot_id`: see [`boot::id`].
    pub fn new(boot_id: Option<String>) -> Self {
        Self {
            boot_id,
            ..Self::default()
        }
    }

    /// Compares the newest Node with the one of the last call.
    pub fn track(
        &mut self,
        node: &NodeView,
        uptime: Option<Uptime>,
        now: Instant,
    ) -> NodeFreshness {
        let metadata = &node.metadata;
        // Nothing is known of another Node, or of one that a backup has replaced.
        if metadata.uid != self.uid || metadata.resource_version < self.resource_version {
            *self = Self::new(self.boot_id.take());
            self.uid.clone_from(&metadata.uid);
        }
        self.resource_version = metadata.resource_version;
        let no_report = self.report(node, uptime, now).err();
        let keeps_reporting = self.kubelet.evidence == Evidence::Write;
        let synced_at = self.reported_at.map(|since| since + PODS_SYNCED_AFTER);
        NodeFreshness {
            no_report,
            stale_conditions: self.stale_conditions(node, uptime),
            pods_synced: keeps_reporting && synced_at.is_some_and(|synced_at| synced_at <= now),
        }
    }

    /// `Err` is why the kubelet has not reported since this boot. A Node without a heartbeat counts as reported.
    fn report(
        &mut self,
        node: &NodeView,
        uptime: Option<Uptime>,
        now: Instant,
    ) -> Result<(), String> {
        const NO_REPORT: &str = "the kubelet has not reported since this boot";
        let heartbeat = last_heartbeat(&node.conditions);
        let stale = self.kubelet.stale(heartbeat.into_iter().collect(), uptime);
        // In some containers (LXC, systemd-nspawn) a kubelet has a boot ID of its own. A report that the agent saw is not
        // of an earlier boot.
        if let Some(id) = &self.boot_id
            && boot::is_id(&node.boot_id)
            && !id.eq_ignore_ascii_case(&node.boot_id)
            && self.kubelet.evidence < Evidence::Write
        {
            let times = heartbeat
                .zip(uptime)
                .map(|(heartbeat, Uptime { boot, .. })| {
                    format!(
                        "; its last heartbeat is from {heartbeat:.0}, and the boot was at {boot:.0}"
                    )
                });
            return Err(format!(
                "{NO_REPORT}: the Node has boot ID {}, and this boot has {id}{}",
                node.boot_id,
                times.unwrap_or_default()
            ));
        }
        if let Some(written) = stale {
            return Err(format!("{NO_REPORT}: its last heartbeat is {written}"));
        }
        if heartbeat.is_some() {
            self.reported_at.get_or_insert(now);
        }
        Ok(())
    }

    fn stale_conditions(
        &mut self,
        node: &NodeView,
        uptime: Option<Uptime>,
    ) -> BTreeMap<String, String> {
        let mut known = std::mem::take(&mut self.conditions);
        let mut stale = BTreeMap::new();
        for condition in &node.conditions {
            let kind = &condition.type_;
            let mut tracker = known.remove(kind).unwrap_or_default();
            if let Some(written) = tracker.stale(times(condition), uptime) {
                stale.insert(kind.clone(), written);
            }
            self.conditions.insert(kind.clone(), tracker);
        }
        stale
    }
}

/// The newest heartbeat of the kubelet.
pub(super) fn last_heartbeat(conditions: &[NodeCondition]) -> Option<Timestamp> {
    let conditions = conditions.iter().filter(|each| is_kubelets(each));
    let heartbeats = conditions.filter_map(|each| each.last_heartbeat_time.as_ref());
    heartbeats.map(|time| time.0).max()
}

/// The times of a condition's writes, as the condition has them. The node controller writes the conditions of a kubelet that is silent: a
/// new transition with the old heartbeat is no report.
fn times(condition: &NodeCondition) -> Vec<Timestamp> {
    let transition = condition.last_transition_time.as_ref();
    let transition = transition.filter(|_| !is_kubelets(condition));
    let times = condition.last_heartbeat_time.iter().chain(transition);
    times.map(|time| time.0).collect()
}

fn is_kubelets(condition: &NodeCondition) -> bool {
    KUBELET_CONDITIONS.contains(&condition.type_.as_str())
}

#[cfg(test)]
mod tests;
