//! What the watch delivers, and what follows from another version of the Node.

use std::time::Instant;

use tracing::debug;

use super::Agent;
use crate::api::watch::WatchUpdate;
use crate::boot::Uptime;
use crate::node::view::{Latest, NodeView};
use crate::node::writes::Writes;

impl Agent<'_> {
    pub(super) fn observe_watch(&mut self, update: WatchUpdate<NodeView>) {
        match update {
            WatchUpdate::Init => self.latest.begin_relist(),
            WatchUpdate::Apply(node) => self.observe_node(node, Latest::observe),
            WatchUpdate::Delete(uid) => self.node_deleted(&uid),
            WatchUpdate::InitDone => {
                self.connection.watching();
                self.latest.end_relist();
                if self.latest.get().is_none() {
                    self.connection.node_missing(&self.options.node_name);
                }
            }
            WatchUpdate::Ended(error) => self.connection.watch_ended(error.as_ref()),
            WatchUpdate::Stale => self.connection.outdated(),
        }
    }

    /// `record` is how the latest Node follows one from there.
    pub(super) fn observe_node(
        &mut self,
        node: NodeView,
        record: fn(&mut Latest, NodeView) -> bool,
    ) {
        self.node_seen = true;
        let known = self.latest.get();
        if known.is_some_and(|known| known.metadata.uid != node.metadata.uid) {
            // What the writes to another Node have shown is not about this one.
            self.writes = Writes::default();
        }
        let resource_version = node.metadata.resource_version;
        if record(&mut self.latest, node) {
            debug!(resource_version, "saw the Node");
            if let Some(node) = self.latest.get() {
                self.freshness = self
                    .freshness_tracker
                    .track(node, Uptime::now(), Instant::now());
            }
        } else {
            debug!(resource_version, "dropped a Node older than the one known");
        }
    }

    fn node_deleted(&mut self, uid: &str) {
        if self.latest.deleted(uid) {
            self.writes = Writes::default();
            self.connection.node_missing(&self.options.node_name);
        }
    }
}
