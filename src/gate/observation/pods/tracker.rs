//! What is known from earlier judgements: what the status of each pod shows of this boot, and which DaemonSets had pods.

use std::collections::HashMap;

use super::daemon_sets::Departures;
use super::pod::Pods;
use crate::boot::Uptime;
use crate::gate::freshness::{NodeFreshness, WriteTracker};

#[derive(Debug, Default)]
pub(in crate::gate::observation) struct Tracker {
    /// By their uids.
    pods: HashMap<String, TrackedPod>,
    pub(in crate::gate::observation) departures: Departures,
}

#[derive(Debug, Default)]
struct TrackedPod {
    resource_version: u64,
    writes: WriteTracker,
}

/// By the pod's uid: when its status was written. Only pods whose status is from before this boot.
pub(super) type StalePods = HashMap<String, String>;

impl Tracker {
    /// Compares the pods with those of the last call.
    pub(in crate::gate::observation) fn stale(
        &mut self,
        pods: &Pods,
        freshness: &NodeFreshness,
        uptime: Option<Uptime>,
    ) -> StalePods {
        self.pods.retain(|uid, _| pods.contains_key(uid));
        let mut stale = StalePods::new();
        for (uid, pod) in pods {
            let tracked = self.pods.entry(uid.clone()).or_default();
            // Nothing is known of a pod that a backup has replaced.
            if pod.metadata.resource_version < tracked.resource_version {
                *tracked = TrackedPod::default();
            }
            tracked.resource_version = pod.metadata.resource_version;
            let written = tracked.writes.stale(pod.times(), uptime);
            if let Some(written) = written.filter(|_| !freshness.pods_synced) {
                stale.insert(uid.clone(), written);
            }
        }
        stale
    }
}
