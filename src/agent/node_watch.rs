//! What is heard of the own Node, from the watch and in answers.

use std::time::Instant;

use tracing::{debug, warn};

use super::Agent;
use crate::api::watch::WatchUpdate;
use crate::boot::Span;
use crate::node::view::NodeView;
use crate::node::writes::Writes;

impl Agent<'_> {
    pub(super) fn hear(&mut self, news: WatchUpdate<NodeView>) {
        match news {
            WatchUpdate::Init => self.latest.begin_resync(),
            WatchUpdate::Apply(node) => self.offer(node),
            WatchUpdate::Delete(uid) => self.gone(&uid),
            WatchUpdate::InitDone => {
                self.connection.watching();
                self.latest.end_resync();
                if self.latest.get().is_none() {
                    self.tell_that_there_is_no_node();
                }
            }
            WatchUpdate::Ended(error) => self.connection.watch_ended(error.as_ref()),
            WatchUpdate::Stale => self.connection.outdated(),
        }
    }

    pub(super) fn offer(&mut self, node: NodeView) {
        self.seen = true;
        if self
            .latest
            .get()
            .is_some_and(|known| known.metadata.uid != node.metadata.uid)
        {
            // What was learnt of writes to another Node is not about this one.
            self.writes = Writes::default();
        }
        let resource_version = node.metadata.resource_version;
        if self.latest.offer(node) {
            debug!(resource_version, "saw the node");
            if let Some(node) = self.latest.get() {
                self.freshness = self
                    .freshness_tracker
                    .track(node, Span::now(), Instant::now());
            }
        } else {
            debug!(resource_version, "dropped a node older than the one known");
        }
    }

    pub(super) fn gone(&mut self, uid: &str) {
        if self.latest.gone(uid) {
            // What was learnt of writes to it is not about the next Node of this name.
            self.writes = Writes::default();
            self.tell_that_there_is_no_node();
        }
    }

    fn tell_that_there_is_no_node(&self) {
        warn!(
            node = self.node_name,
            "there is no such node; waiting for it"
        );
    }
}
