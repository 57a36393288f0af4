//! What has happened to the taint between two decisions. Pure.

use std::time::{Duration, Instant};

use super::{Decision, RuleEvent, RuleState};
use crate::node::patch::Action;
use crate::node::view::NodeView;
use crate::taint::TaintMatcher;

impl RuleState {
    /// What has happened since the decision `before`. `since_seen`: for how long the taint was there until now.
    pub(super) fn happened(
        &mut self,
        now: Instant,
        before: Decision,
        node: Option<&NodeView>,
        since_seen: Option<Duration>,
    ) -> Option<RuleEvent> {
        let comes = !before.is_tainted() && self.decision.is_tainted();
        let goes = before.is_tainted() && self.decision.is_absent();
        match (self.unanswered.take_if(|_| comes || goes), self.decision) {
            (Some(Action::PutBack), _) if comes => {
                self.put_back(now);
                Some(RuleEvent::PutBack)
            }
            (Some(Action::Remove), _) if goes => {
                // It counts like any other removal.
                self.tokens.take(now);
                Some(RuleEvent::RemovedUnanswered { since_seen })
            }
            (_, Decision::Limited { .. }) => {
                let is_new = !matches!(before, Decision::Limited { .. });
                is_new.then_some(RuleEvent::Fight)
            }
            _ if comes => Some(RuleEvent::Tainted),
            _ if goes => Some(self.gone(before.is_ready(), node)),
            _ => None,
        }
    }

    /// Another program has removed the taint, or changed its value.
    fn gone(&self, ready: bool, node: Option<&NodeView>) -> RuleEvent {
        let taints = node.map_or(&[][..], |node| &node.taints);
        let of_any_value = TaintMatcher {
            value: None,
            ..self.own_taints.shown().clone()
        };
        match taints.iter().find(|taint| of_any_value.matches(taint)) {
            Some(by) => RuleEvent::ReplacedByOther {
                ready,
                by: by.clone(),
            },
            None => RuleEvent::RemovedByOther { ready },
        }
    }
}
