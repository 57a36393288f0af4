//! What became of a rule's taint and of its own changes, and how people are told.

use std::time::{Duration, Instant};

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Taint;

use super::RuleRunner;
use crate::node::patch::{Action, Change, Step};
use crate::node::view::NodeView;
use crate::notification::{Notification, RuleEvent};
use crate::rule::{Decision, Occurrence};

impl RuleRunner {
    /// The server took a change, and this is the Node afterwards.
    pub(in crate::agent) fn changed(&mut self, now: Instant, change: &Change, node: &NodeView) {
        let mine = |taint: &&Taint| self.is_behind(change.action, taint);
        let taints: Vec<_> = change.taints.iter().filter(mine).cloned().collect();
        if taints.is_empty() {
            return;
        }
        self.unanswered = None;
        match change.action {
            Action::Remove => self.removed(now, taints, node),
            Action::PutBack => self.put_back(now, taints, node),
        }
    }

    fn removed(&mut self, now: Instant, taints: Vec<Taint>, node: &NodeView) {
        let seen = self.state.seen_since();
        let since_seen = seen.map(|seen| now.duration_since(seen));
        let since_ready = self.since_ready(now);
        for taint in taints {
            if Step::new(Action::Remove, &taint).is_pending(node) {
                let action = Action::Remove;
                self.tell(RuleEvent::Undone { action, taint }, true);
                continue;
            }
            self.last_removal = Some(Timestamp::now());
            let removed = RuleEvent::Removed {
                taint,
                since_seen,
                since_ready,
            };
            self.tell(removed, true);
        }
        self.state.removed(now);
        self.enter(now, Decision::Absent);
    }

    /// For how long the rule has been ready for a taint that is there; `None` where it is not ready, or fails open.
    pub(super) fn since_ready(&self, now: Instant) -> Option<Duration> {
        let stable = self.state.stable_at().filter(|at| *at <= now)?;
        // Gates may have been open long before the Node was seen: they run while the API server is away, too.
        Some(now.duration_since(stable.max(self.state.seen_since()?)))
    }

    fn put_back(&mut self, now: Instant, taints: Vec<Taint>, node: &NodeView) {
        if node.has(&self.rule().taint) {
            let put_back = self.is_put_back(now);
            self.tell(put_back, true);
        } else {
            let action = Action::PutBack;
            for taint in taints {
                self.tell(RuleEvent::Undone { action, taint }, true);
            }
            self.state.put_back_undone();
        }
        self.enter(now, self.decision());
    }

    /// The Node has the taint again by our doing. Gives what is to be told.
    fn is_put_back(&mut self, now: Instant) -> RuleEvent {
        self.last_put_back = Some(Timestamp::now());
        self.state.put_back(now);
        RuleEvent::PutBack {
            waits_for: self.gates.waits_for(),
        }
    }

    /// It is not known whether `change` took effect.
    pub(in crate::agent) fn unanswered(&mut self, change: &Change) {
        let mut taints = change.taints.iter();
        if taints.any(|taint| self.is_behind(change.action, taint)) {
            self.unanswered = Some(change.action);
        }
    }

    /// This is the Node after a change whose outcome was not known.
    pub(in crate::agent) fn read(&mut self, node: &NodeView) {
        let has_taint = node.has(&self.rule().taint);
        self.unanswered
            .take_if(|action| (*action == Action::Remove) == has_taint);
    }

    /// The server refuses the `action`. `first`: it has not said so in these words before.
    pub(in crate::agent) fn denied(
        &mut self,
        action: Action,
        taint: &Taint,
        message: &str,
        first: bool,
    ) {
        if !self.is_behind(action, taint) {
            return;
        }
        let denied = RuleEvent::Denied {
            action,
            taint: taint.clone(),
            message: message.to_owned(),
        };
        self.tell(denied, first);
        self.denied = Some(message.to_owned());
    }

    pub(super) fn occurred(&mut self, now: Instant, occurrence: Occurrence) {
        let (event, allowance) = match occurrence {
            Occurrence::Tainted => {
                let event = if self.unanswered.take() == Some(Action::PutBack) {
                    self.is_put_back(now)
                } else {
                    RuleEvent::Tainted
                };
                (event, &mut self.allowance)
            }
            Occurrence::RemovedByOther { ready } => {
                let event = if self.unanswered.take() == Some(Action::Remove) {
                    self.state.removed_without_answer(now);
                    RuleEvent::RemovedUnanswered
                } else {
                    RuleEvent::RemovedByOther { ready }
                };
                (event, &mut self.allowance)
            }
            Occurrence::LongWait => {
                let waits_for = self.waits_for();
                (RuleEvent::LongWait { waits_for }, &mut self.rare_allowance)
            }
            Occurrence::Deadline(action) => {
                let event = RuleEvent::Deadline {
                    after: self.state.rule().deadline.after,
                    action,
                    waits_for: self.waits_for(),
                };
                (event, &mut self.rare_allowance)
            }
            Occurrence::Fight => (RuleEvent::Fight, &mut self.rare_allowance),
        };
        let aloud = allowance.try_take(now);
        self.tell(event, aloud);
    }

    /// What keeps the taint there.
    fn waits_for(&self) -> String {
        let gates = self.gates.waits_for();
        if !gates.is_empty() {
            return gates;
        }
        match (self.decision(), &self.denied) {
            (Decision::Held, _) => "Karpenter has not registered the node yet".into(),
            (Decision::Stabilizing { .. }, _) => {
                "the gates have not been open for stableFor".into()
            }
            (_, Some(message)) => format!("the server refuses the removal: {message}"),
            _ => "a removal that succeeds".into(),
        }
    }

    fn tell(&self, event: RuleEvent, aloud: bool) {
        let notice = Notification {
            rule: self.rule().name.clone(),
            taint: self.rule().taint.to_string(),
            dry_run: self.rule().dry_run,
            node_uid: self.state.uid().map(str::to_owned),
            event,
        };
        self.notifier.tell(&notice, aloud);
    }
}
