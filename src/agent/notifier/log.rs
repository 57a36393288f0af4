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
        event,
        ..
    } = notification;
    match event {
        RuleEvent::Tainted => info!(rule, taint, "saw the taint"),
        RuleEvent::Removed { taint, .. } => {
            let (key, value, effect) = parts(taint);
            info!(rule, key, value, effect, "removed the taint");
        }
        RuleEvent::Undone { action, taint } => {
            let (key, value, effect) = parts(taint);
            let result = match action {
                Action::Remove => "there",
                Action::PutBack => "gone",
            };
            warn!(
                rule,
                key,
                value,
                effect,
                "the server accepted the change, but the taint is {result} again"
            );
        }
        RuleEvent::RemovedUnanswered => {
            info!(
                rule,
                taint, "found the taint gone after a removal without an answer"
            );
        }
        RuleEvent::LongWait => info!(rule, taint, waits_for, "the taint is still there"),
        RuleEvent::RemovedByOther { ready: true } => {
            info!(rule, taint, "found the taint gone already");
        }
        RuleEvent::RemovedByOther { ready: false } => {
            warn!(
                rule,
                taint, "somebody else removed the taint before the rule was ready"
            );
        }
        RuleEvent::PutBack => warn!(rule, taint, waits_for, "put the taint back"),
        RuleEvent::Denied(denied) => {
            let (key, _, effect) = parts(&denied.taint);
            let change = match denied.action {
                Action::Remove => "the removal",
                Action::PutBack => "to put the taint back",
            };
            let error = &denied.message;
            warn!(rule, key, effect, error, "the server refused {change}");
        }
        RuleEvent::Fight => {
            warn!(
                rule,
                taint, "somebody keeps putting the taint back; slowing down"
            );
        }
        RuleEvent::Deadline { after, action } => {
            let (after, action) = (after.as_secs_f64(), action.as_str());
            warn!(
                rule,
                taint, after, action, waits_for, "the taint has been there for too long"
            );
        }
    }
}

fn parts(taint: &Taint) -> (&str, &str, &str) {
    let value = taint.value.as_deref().unwrap_or_default();
    (&taint.key, value, &taint.effect)
}
