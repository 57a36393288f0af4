//! What people are told of a rule, whichever way they are told it.

use std::time::Duration;

use k8s_openapi::api::core::v1::Taint;
use tracing::{info, warn};

use crate::config::DeadlineAction;
use crate::node::patch::Action;

/// Something that happened to a rule.
#[derive(Debug, Clone, PartialEq)]
pub struct Notification {
    /// The rule's name.
    pub rule: String,
    /// `KEY[=VALUE][:EFFECT]`, as the rule has it.
    pub taint: String,
    /// Whether the rule writes nothing.
    pub dry_run: bool,
    /// The `metadata.uid` of the Node it is about.
    pub node_uid: Option<String>,
    /// What happened.
    pub event: RuleEvent,
}

/// What happened.
#[derive(Debug, Clone, PartialEq)]
pub enum RuleEvent {
    /// The taint was seen.
    Tainted,
    /// The taint was removed here.
    Removed {
        /// The very taint.
        taint: Taint,
        /// How long it took from the first sight of the taint.
        since_seen: Option<Duration>,
        /// How long it took from when the rule was ready; `None` where it failed open.
        since_ready: Option<Duration>,
    },
    /// The server took the change, and the Node it gave back is as it was before.
    Undone {
        /// Which.
        action: Action,
        /// The very taint.
        taint: Taint,
    },
    /// The taint is gone after a removal whose answer was lost: most likely it was removed here.
    RemovedUnanswered,
    /// The taint waits for long already.
    LongWait {
        /// What it waits for.
        waits_for: String,
    },
    /// Somebody else removed the taint.
    RemovedByOther {
        /// Whether the rule was ready by then: if not, it was removed too early.
        ready: bool,
    },
    /// The taint was put back here, as a gate has closed.
    PutBack {
        /// The gates that are not open, with their reasons.
        waits_for: String,
    },
    /// The server does not allow a change.
    Denied {
        /// Which.
        action: Action,
        /// The very taint.
        taint: Taint,
        /// In the server's words.
        message: String,
    },
    /// The taint comes back as often as it is removed.
    Fight,
    /// The taint has been there for too long.
    Deadline {
        /// The rule's `deadline.after`.
        after: Duration,
        /// What follows.
        action: DeadlineAction,
        /// What it waits for.
        waits_for: String,
    },
}

impl Notification {
    /// Writes it to the log.
    pub fn log(&self) {
        let Self {
            rule, taint, event, ..
        } = self;
        match event {
            RuleEvent::Tainted => info!(rule, taint, "saw the taint"),
            RuleEvent::Removed { taint, .. } => {
                let (key, value, effect) = parts(taint);
                info!(rule, key, value, effect, "removed the taint");
            }
            RuleEvent::Undone { action, taint } => {
                let (key, value, effect) = parts(taint);
                match action {
                    Action::Remove => warn!(
                        rule,
                        key,
                        value,
                        effect,
                        "the server took the change, and the taint is there again"
                    ),
                    Action::PutBack => warn!(
                        rule,
                        key,
                        value,
                        effect,
                        "the server took the change, and the taint is gone again"
                    ),
                }
            }
            RuleEvent::RemovedUnanswered => {
                info!(
                    rule,
                    taint, "found the taint gone after a removal without an answer"
                );
            }
            RuleEvent::LongWait { waits_for } => {
                info!(rule, taint, waits_for, "the taint is still there");
            }
            RuleEvent::RemovedByOther { ready: true } => {
                info!(rule, taint, "found the taint gone already");
            }
            RuleEvent::RemovedByOther { ready: false } => {
                warn!(
                    rule,
                    taint, "somebody else removed the taint before the rule was ready"
                );
            }
            RuleEvent::PutBack { waits_for } => {
                warn!(rule, taint, waits_for, "put the taint back");
            }
            RuleEvent::Denied {
                action,
                taint,
                message,
            } => {
                let (key, _, effect) = parts(taint);
                match action {
                    Action::Remove => warn!(
                        rule,
                        key,
                        effect,
                        error = message,
                        "the server refused the removal"
                    ),
                    Action::PutBack => warn!(
                        rule,
                        key,
                        effect,
                        error = message,
                        "the server refused to have the taint put back"
                    ),
                }
            }
            RuleEvent::Fight => {
                warn!(
                    rule,
                    taint, "somebody keeps putting the taint back; slowing down"
                );
            }
            RuleEvent::Deadline {
                after,
                action,
                waits_for,
            } => {
                let (after, action) = (after.as_secs_f64(), action.as_str());
                warn!(
                    rule,
                    taint, after, action, waits_for, "the taint has been there for too long"
                );
            }
        }
    }
}

/// Key, value and effect, as the log has them.
fn parts(taint: &Taint) -> (&str, &str, &str) {
    let value = taint.value.as_deref().unwrap_or_default();
    (&taint.key, value, &taint.effect)
}
