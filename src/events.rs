//! Events on the Node.

mod publisher;

use kube::runtime::events::{Event, EventType};

use crate::config::DeadlineAction;
use crate::node::patch::Action;
use crate::rule::{Notification, RuleEvent, wait_in_words};
use crate::taint::written;
use crate::text::printable_bytes;
pub use publisher::{Publisher, Sender, channel};

/// The API server's limit for a note, in bytes.
const MAX_NOTE: usize = 1024;

/// The reasons of Events.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reason {
    TaintRemoved,
    TaintRemovedByOther,
    RemovalWaiting,
    RemovalDenied,
    TaintPutBack,
    PutBackDenied,
    DeadlineExceeded,
    TaintKeepsComingBack,
    ReloadFailed,
}

impl Reason {
    /// In the order of the documentation.
    pub const ALL: [Self; 9] = [
        Self::TaintRemoved,
        Self::TaintRemovedByOther,
        Self::RemovalWaiting,
        Self::RemovalDenied,
        Self::TaintPutBack,
        Self::PutBackDenied,
        Self::DeadlineExceeded,
        Self::TaintKeepsComingBack,
        Self::ReloadFailed,
    ];

    /// The Event's `reason`, `type` and `action`. A warning is for events that an operator may have to act on.
    pub fn fields(self) -> (&'static str, EventType, &'static str) {
        use EventType::{Normal, Warning};
        match self {
            Self::TaintRemoved => ("TaintRemoved", Normal, "RemoveTaint"),
            Self::TaintRemovedByOther => ("TaintRemovedByOther", Warning, "RemoveTaint"),
            Self::RemovalWaiting => ("RemovalWaiting", Normal, "WaitForGates"),
            Self::RemovalDenied => ("RemovalDenied", Warning, "RemoveTaint"),
            Self::TaintPutBack => ("TaintPutBack", Warning, "PutTaintBack"),
            Self::PutBackDenied => ("PutBackDenied", Warning, "PutTaintBack"),
            Self::DeadlineExceeded => ("DeadlineExceeded", Warning, "WaitForGates"),
            Self::TaintKeepsComingBack => ("TaintKeepsComingBack", Warning, "RemoveTaint"),
            Self::ReloadFailed => ("ReloadFailed", Warning, "ReloadConfiguration"),
        }
    }
}

/// The Event for a notification, if there is one. A dry run has none, as an Event is a write. Pure.
pub fn event(notification: &Notification) -> Option<Event> {
    if notification.dry_run {
        return None;
    }
    let Notification {
        rule,
        taint,
        waits_for,
        last_gate,
        ..
    } = notification;
    let (reason, note) = match &notification.event {
        RuleEvent::Tainted
        | RuleEvent::Undone { .. }
        | RuleEvent::RemovedByOther { ready: true }
        | RuleEvent::ReplacedByOther { ready: true, .. } => return None,
        RuleEvent::Removed { taint, .. } => (
            Reason::TaintRemoved,
            format!(
                "Removed the taint {} (rule {rule}){}",
                written(taint),
                wait_in_words(notification.waited_seconds(), last_gate.as_deref())
            ),
        ),
        RuleEvent::TakenOff { taint } => (
            Reason::TaintRemoved,
            format!(
                "Removed the taint {}, which untaint had put back (rule {rule}): no rule for this Node names it now",
                written(taint)
            ),
        ),
        RuleEvent::RemovedUnanswered { .. } => (
            Reason::TaintRemoved,
            format!(
                "The taint {taint} is gone (rule {rule}){}; the server did not answer the removal",
                wait_in_words(notification.waited_seconds(), last_gate.as_deref())
            ),
        ),
        RuleEvent::RemovedByOther { ready: false } => (
            Reason::TaintRemovedByOther,
            format!("Another program removed the taint {taint} before rule {rule} was ready"),
        ),
        RuleEvent::ReplacedByOther { ready: false, by } => {
            let by = written(by);
            let note = format!(
                "Another program replaced the taint {taint} by {by} before rule {rule} was ready"
            );
            (Reason::TaintRemovedByOther, note)
        }
        RuleEvent::LongWait => (
            Reason::RemovalWaiting,
            format!("The taint {taint} is still there (rule {rule}): {waits_for}"),
        ),
        RuleEvent::PutBack => (
            Reason::TaintPutBack,
            format!("Put the taint {taint} back (rule {rule}): {waits_for}"),
        ),
        RuleEvent::Denied(denied) => {
            let (reason, change) = match denied.action {
                Action::Remove => (Reason::RemovalDenied, "remove"),
                Action::PutBack => (Reason::PutBackDenied, "put back"),
            };
            let (taint, message) = (written(&denied.taint), &denied.message);
            let problem = if denied.decided {
                "refused"
            } else {
                "fails again and again"
            };
            let note = format!(
                "The server {problem} to {change} the taint {taint} (rule {rule}): {message}"
            );
            (reason, note)
        }
        RuleEvent::Deadline { after, action } => {
            let then = match action {
                DeadlineAction::Keep => "it stays until every gate is open",
                DeadlineAction::Remove => "untaint removes it anyway",
            };
            let after = after.as_secs_f64();
            let note = format!(
                "The taint {taint} has been there for {after} s; {then} (rule {rule}): {waits_for}"
            );
            (Reason::DeadlineExceeded, note)
        }
        RuleEvent::Fight => (
            Reason::TaintKeepsComingBack,
            format!(
                "Another program keeps putting the taint {taint} back; untaint now removes it less often (rule {rule})"
            ),
        ),
    };
    Some(with_note(reason, &note))
}

/// The Event for an invalid configuration file. `problems`: one a line. Pure.
pub fn bad_file(problems: &str) -> Event {
    let problems: Vec<_> = problems.lines().collect();
    let problems = problems.join("; ");
    let note = format!(
        "The configuration file is invalid; untaint continues with the active configuration: {problems}"
    );
    with_note(Reason::ReloadFailed, &note)
}

fn with_note(reason: Reason, note: &str) -> Event {
    let (reason, type_, action) = reason.fields();
    Event {
        type_,
        reason: reason.into(),
        // Gates, servers and files can contain any text.
        note: Some(printable_bytes(note, MAX_NOTE)),
        action: action.into(),
        secondary: None,
    }
}

#[cfg(test)]
mod tests;
