//! The decision, and what follows from it. Pure.

use std::time::Instant;

use super::{Decision, RuleState};
use crate::config::DeadlineAction;
use crate::node::patch::{Action, Step, Wanted, Wish};
use crate::node::view::NodeView;
use crate::taint::TaintMatcher;

impl RuleState {
    /// Whether the rule applies to `node`.
    pub fn selects(&self, node: &NodeView) -> bool {
        node.selected_by(&self.rule.node_selector)
    }

    /// The decision by the Node alone: [`Decision::Waiting`] where it has the taint.
    pub(super) fn look_at(&self, node: &NodeView) -> Decision {
        if !self.selects(node) {
            Decision::NotSelected
        } else if self.own_taints.are_on(node) {
            Decision::Waiting
        } else {
            Decision::Absent
        }
    }

    /// The decision by gates and time about a Node with the taint.
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

    /// The decision about a Node without the taint.
    pub(super) fn decide_without_taint(&self, now: Instant, node: &NodeView) -> Decision {
        // A Node cannot have two taints with the same key and effect, even if the values differ.
        let is_possible =
            |back: &TaintMatcher| Step::new(Action::PutBack, &back.to_taint()).is_pending(node);
        let back = self
            .own_taints
            .to_put_back()
            .filter(|back| is_possible(back));
        let due = back.and(self.rule.retaint.as_ref()).and_then(|retaint| {
            let created = node.metadata.creation_timestamp.as_ref().map(|time| time.0);
            self.retaint_timer.due_at(retaint.after, created)
        });
        match due {
            Some(until) if now < until => Decision::Lapsing { until },
            Some(_) => Decision::Lapsed,
            None => Decision::Absent,
        }
    }

    /// The change that is due, in a dry run as well.
    pub fn due(&self) -> Option<Action> {
        match self.decision {
            Decision::Ready => Some(Action::Remove),
            Decision::Lapsed => Some(Action::PutBack),
            _ => None,
        }
    }

    /// The change to write now.
    pub fn wants(&self) -> Option<Action> {
        self.due().filter(|_| !self.rule.dry_run)
    }

    /// Adds the change to write now.
    pub fn add_wanted<'a>(&'a self, wanted: &mut Wanted<'a>) {
        match self.wants() {
            Some(Action::Remove) => {
                let follows_from_node = self.rule.reads_node();
                let wish = |matcher| Wish {
                    matcher,
                    follows_from_node,
                };
                wanted.remove.extend(self.own_taints.matchers().map(wish));
            }
            Some(Action::PutBack) => {
                let taint = self.own_taints.to_put_back();
                wanted.put_back.extend(taint.map(TaintMatcher::to_taint));
            }
            None => {}
        }
    }

    /// Whether the rule has nothing left to do with the Node as it is.
    pub fn is_done(&self) -> bool {
        match self.decision {
            Decision::NotSelected | Decision::Absent => true,
            _ => self.rule.dry_run && self.due().is_some(),
        }
    }

    /// Whether the Node has the taint, or may have it, and the rule has something left to do.
    pub fn awaits_removal(&self) -> bool {
        let may_be_tainted = self.decision == Decision::NoNode || self.decision.is_tainted();
        may_be_tainted && !self.is_done()
    }

    /// Whether a change can follow from what the gates have found so far. While one gate is not open, the change follows
    /// from what the others have found once that one opens.
    pub fn counts_on_gates(&self) -> bool {
        match self.decision {
            Decision::Lapsing { .. } => true,
            Decision::Lapsed => self.wants().is_some(),
            _ => !self.is_done() && !self.rule.gates.is_empty(),
        }
    }

    /// What keeps the taint on the Node. `gates`: those that are not open, with their reasons.
    pub fn waits_for(&self, gates: String) -> String {
        if !gates.is_empty() {
            return gates;
        }
        match (self.decision, &self.failed, &self.denied) {
            (Decision::Held, ..) => "Karpenter has not registered the node yet".into(),
            (Decision::Stabilizing { .. }, ..) => self.decision.meaning().into(),
            (_, Some(message), _) => format!("the removal, which fails: {message}"),
            (_, _, Some(message)) => format!("the server refuses the removal: {message}"),
            _ => "the removal, which has not succeeded yet".into(),
        }
    }
}
