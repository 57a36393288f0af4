//! The decision itself. Pure.

use std::time::Instant;

use super::{Decision, RuleState};
use crate::config::DeadlineAction;
use crate::node::patch::{Action, Step};
use crate::node::view::NodeView;

impl RuleState {
    /// What the Node alone says: [`Decision::Waiting`] where it has the taint.
    pub(super) fn see(&self, node: &NodeView) -> Decision {
        if !node.selected_by(&self.rule.node_selector) {
            Decision::NotSelected
        } else if node.has(&self.rule.taint) {
            Decision::Waiting
        } else {
            Decision::Absent
        }
    }

    /// What the gates and the time say of a Node with the taint.
    pub(super) fn decide(&self, now: Instant, node: &NodeView) -> Decision {
        let fails_open = self.is_overdue() && self.rule.deadline.action == DeadlineAction::Remove;
        let stable = match self.stable_at() {
            _ if fails_open => now,
            Some(stable) => stable,
            None => return Decision::Waiting,
        };
        if now < stable {
            Decision::Stabilizing { until: stable }
        } else if node.awaits_registration() {
            Decision::Held
        } else if let Some(until) = self.tokens.next_at(now) {
            Decision::Limited { until }
        } else {
            Decision::Ready
        }
    }

    /// Whether a Node without the taint is to have it again.
    pub(super) fn decide_without_taint(&self, now: Instant, node: &NodeView) -> Decision {
        // Somebody may have given it another value, of which there can be no second.
        let back = Step::new(Action::PutBack, &self.rule.taint.to_taint());
        let retaint = self.rule.retaint.filter(|_| back.is_pending(node));
        let due = retaint.and_then(|retaint| {
            let created = node.metadata.creation_timestamp.as_ref().map(|time| time.0);
            self.retaint_timer.due_at(retaint.after, created)
        });
        match due {
            Some(until) if now < until => Decision::Lapsing { until },
            Some(_) => Decision::Lapsed,
            None => Decision::Absent,
        }
    }
}
