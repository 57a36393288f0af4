//! The status that the endpoints show, after each round of the loop.

use super::{Agent, send_if_changed};
use crate::rule::LeftTaint;
use crate::status::{ApiStatus, LeftTaintStatus, NodeStatus, Status};
use crate::taint::written;

impl Agent<'_> {
    pub(super) fn update_status(&mut self) {
        let last_error = self.failures.borrow_and_update().clone();
        let left = self.put_backs.left();
        let status = Status {
            version: env!("CARGO_PKG_VERSION"),
            node: NodeStatus {
                name: self.options.node_name.clone(),
                seen: self.node_seen,
                resource_version: self.latest.get().map(|node| node.metadata.resource_version),
            },
            configuration: self.configuration.clone(),
            api: ApiStatus {
                watching: self.connection.is_watching(),
                last_error,
            },
            policy: self.policy_status(),
            waits_for: self.once_waits_for(),
            rules: self.rules.iter().map(|rule| rule.status(left)).collect(),
            left_taints: left.iter().map(left_taint).collect(),
        };
        send_if_changed(&self.status, Some(status));
    }
}

fn left_taint(left: &LeftTaint) -> LeftTaintStatus {
    LeftTaintStatus {
        taint: written(&left.taint),
        rule: left.rule.clone(),
        reason: left.left.as_str(),
        message: left.left.meaning(),
        denied: left.denied.clone(),
    }
}
