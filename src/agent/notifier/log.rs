//! The log line of a notification.

use k8s_openapi::api::core::v1::Taint;
use tracing::{info, warn};

use crate::node::patch::Action;
use crate::rule::{Notification, RuleEvent};

pub(super) fn write(notification: &Notification) {
    let Notification {
        rule,
        taint,
        waits_for,
        last_gate,
        event,
        ..
    } = notification;
    match event {
        RuleEvent::Tainted => info!(rule, taint, "saw the taint"),
        RuleEvent::Removed { taint, .. } => {
            let (key, value, effect) = parts(taint);
            let waited_seconds = notification.waited_seconds();
            info!(
                rule,
                key, value, effect, waited_seconds, last_gate, "removed the taint"
            );
        }
        RuleEvent::TakenOff { taint } => {
            let (key, value, effect) = parts(taint);
            info!(
                rule,
                key, value, effect, "removed the taint that untaint had put back"
            );
        }
        RuleEvent::Undone { action, taint } => {
            let (key, value, effect) = parts(taint);
            let problem = match action {
                Action::Remove => "the server accepted the removal, but the taint is there again",
                Action::PutBack => "the server accepted the taint, but it is gone again",
            };
            warn!(rule, key, value, effect, "{problem}");
        }
        RuleEvent::RemovedUnanswered { .. } => {
            let waited_seconds = notification.waited_seconds();
            info!(
                rule,
                taint,
                waited_seconds,
                last_gate,
                "the taint is gone, after a removal that the server did not answer"
            );
        }
        RuleEvent::LongWait => info!(rule, taint, waits_for, "the taint is still there"),
        RuleEvent::RemovedByOther { ready: true } => {
            info!(
                rule,
                taint, "another program removed the taint after the rule was ready"
            );
        }
        RuleEvent::RemovedByOther { ready: false } => {
            warn!(
                rule,
                taint, "another program removed the taint before the rule was ready"
            );
        }
        RuleEvent::ReplacedByOther { ready: true, by } => {
            let value = parts(by).1;
            info!(
                rule,
                taint,
                value,
                "another program gave the taint another value after the rule was ready"
            );
        }
        RuleEvent::ReplacedByOther { ready: false, by } => {
            let value = parts(by).1;
            warn!(
                rule,
                taint,
                value,
                "another program gave the taint another value before the rule was ready"
            );
        }
        RuleEvent::PutBack => warn!(rule, taint, waits_for, "put the taint back"),
        RuleEvent::Denied(denied) => {
            let (key, _, effect) = parts(&denied.taint);
            let problem = match (denied.action, denied.decided) {
                (Action::Remove, true) => "the server refused the removal",
                (Action::Remove, false) => "the removal fails again and again",
                (Action::PutBack, true) => "the server refused to put the taint back",
                (Action::PutBack, false) => "putting the taint back fails again and again",
            };
            let error = &denied.message;
            warn!(rule, key, effect, error, "{problem}");
        }
        RuleEvent::Fight => {
            warn!(
                rule,
                taint, "another program keeps putting the taint back; removing it less often"
            );
        }
        RuleEvent::Deadline { after, action } => {
            let (after_seconds, action) = (after.as_secs_f64(), action.as_str());
            warn!(
                rule,
                taint, after_seconds, action, waits_for, "the taint has been there for too long"
            );
        }
    }
}

fn parts(taint: &Taint) -> (&str, &str, &str) {
    let value = taint.value.as_deref().unwrap_or_default();
    (&taint.key, value, &taint.effect)
}
