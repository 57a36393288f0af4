//! What this process has put back, and what no rule removes.

use std::time::Instant;

use tracing::{info, warn};

use super::Agent;
use crate::node::patch::Action;
use crate::node::writes::Denied;
use crate::rule::{LeftTaint, Notification, RuleEvent, TakenOff};
use crate::taint::written;

impl Agent<'_> {
    /// Judges the taints of the Node by the current rules. Call it before the rules decide, because they adopt taints.
    pub(super) fn update_put_backs(&mut self, now: Instant) {
        let Some(node) = self.latest.get() else {
            return;
        };
        let rules = self.rules.iter_mut().map(|rule| &mut rule.state);
        let mut rules: Vec<_> = rules.collect();
        let under_way = self.slots.change();
        let update = self.put_backs.update(node, &mut rules, under_way);
        for left in update.newly_left {
            if self.left_allowance.try_take(now) {
                log(&left);
            }
        }
        for taken_off in update.taken_off {
            self.taken_off(taken_off);
        }
    }

    pub(super) fn taken_off(&self, taken_off: TakenOff) {
        let TakenOff {
            rule,
            taint,
            is_undone,
        } = taken_off;
        let shown = written(&taint);
        let action = Action::Remove;
        let event = if is_undone {
            RuleEvent::Undone { action, taint }
        } else {
            RuleEvent::TakenOff { taint }
        };
        self.notify_of_orphan(rule, shown, event, true);
    }

    pub(super) fn denied_to_take_off(&mut self, now: Instant, denied: &Denied) {
        if let Some(rule) = self.put_backs.denied(denied) {
            let event = RuleEvent::Denied(denied.clone());
            let is_reported = denied.first && self.left_allowance.try_take(now);
            self.notify_of_orphan(rule, written(&denied.taint), event, is_reported);
        }
    }

    fn notify_of_orphan(&self, rule: String, taint: String, event: RuleEvent, is_reported: bool) {
        let node = self.latest.get();
        let notification = Notification {
            rule,
            taint,
            dry_run: false,
            node_uid: node.map(|node| node.metadata.uid.clone()),
            waits_for: String::new(),
            last_gate: None,
            event,
        };
        self.notifier.notify(&notification, is_reported);
    }
}

fn log(left: &LeftTaint) {
    use crate::rule::Left::{DryRun, NotSelected, Orphaned};
    let (rule, taint) = (&left.rule, written(&left.taint));
    match left.left {
        Orphaned => info!(
            rule,
            taint, "no rule for this Node names the taint that untaint put back; removing it"
        ),
        DryRun => warn!(
            rule,
            taint, "the taint that untaint put back stays, because the rule is a dry run now"
        ),
        NotSelected => info!(
            rule,
            taint, "the taint stays, because nodeSelector does not select this Node"
        ),
    }
}
