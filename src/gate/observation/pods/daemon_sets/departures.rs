//! DaemonSets whose last pod on this node is gone, and whose next one may be about to come.
//!
//! While a DaemonSet replaces its pod, there is none here for a moment. Its controller creates the next pod when it sees that
//! the last one is gone, and the scheduler binds it to the node (kube-controller-manager `daemon_controller.go`,
//! `podsShouldBeOnNode` and `syncNodes`). The backoff for failed pods delays the deletion of such a pod and not the creation
//! of the next one.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use jiff::Timestamp;

use super::super::Known;
use super::super::pod::{DaemonSetId, Pod};

/// How long the next pod of a DaemonSet may take. A controller and a scheduler that work need less than a second. If one of
/// them has failed, another instance replaces it after 15 s (component-base `config/v1alpha1/defaults.go`,
/// `RecommendedDefaultLeaderElectionConfiguration`). A DaemonSet that was deleted, or that no longer selects the node,
/// must not hold the taint for longer.
pub(super) const WAIT: Duration = Duration::from_mins(1);

#[derive(Debug, Default)]
pub(in crate::gate::observation) struct Departures {
    /// Those with a pod at the last call.
    here: BTreeSet<DaemonSetId>,
    gone: BTreeMap<DaemonSetId, Gone>,
}

#[derive(Debug)]
struct Gone {
    until: Instant,
    /// When it was first seen without a pod.
    since: Timestamp,
}

impl Departures {
    /// Compares the DaemonSets and their pods with those of the last call. Those for which nobody waits are not remembered.
    pub(super) fn update(
        &mut self,
        known: &Known<'_>,
        sets: &BTreeMap<DaemonSetId, Vec<&Pod>>,
        is_awaited: impl Fn(&DaemonSetId, &[&Pod]) -> bool,
    ) {
        for id in std::mem::take(&mut self.here) {
            let (until, since) = (known.now + WAIT, known.clock);
            self.gone.insert(id, Gone { until, since });
        }
        self.gone
            .retain(|id, gone| known.now < gone.until && !sets.contains_key(id));
        let awaited = sets.iter().filter(|(id, pods)| is_awaited(id, pods));
        self.here = awaited.map(|(id, _)| id.clone()).collect();
    }

    /// Each with the time since when.
    pub(super) fn gone(&self) -> impl Iterator<Item = (&DaemonSetId, Timestamp)> {
        self.gone.iter().map(|(id, gone)| (id, gone.since))
    }

    /// When the first of them is forgotten, from `now`.
    pub(super) fn valid_for(&self, now: Instant) -> Option<Duration> {
        let ends = self.gone.values().map(|gone| gone.until);
        Some(ends.min()?.saturating_duration_since(now))
    }
}
