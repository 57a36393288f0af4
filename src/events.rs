//! What people are told by Events on the Node.

mod publisher;

use k8s_openapi::api::core::v1::Taint;
use kube::runtime::events::{Event, EventType};

use crate::config::DeadlineAction;
use crate::node::patch::Action;
use crate::rule::{Notification, RuleEvent};
use crate::text::printable_bytes;
pub use publisher::{Publisher, Sender, channel};

/// `reportingController`: a qualified name, without a domain, as there is none of untaint's own.
pub const CONTROLLER: &str = "untaint";
/// The API server takes no longer note, in bytes.
const MAX_NOTE: usize = 1024;

/// Why there is an Event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reason {
    /// The taint was removed here.
    TaintRemoved,
    /// Somebody else removed it before the rule was ready.
    TaintRemovedByOther,
    /// It waits for long already.
    RemovalWaiting,
    /// The server does not allow the removal.
    RemovalDenied,
    /// The taint was put back here.
    TaintPutBack,
    /// The server does not allow that.
    PutBackDenied,
    /// The taint has been there for too long.
    DeadlineExceeded,
    /// It comes back as often as it is removed.
    TaintKeepsComingBack,
    /// The configuration file is bad, and the active configuration stays.
    ReloadFailed,
}

impl Reason {
    /// All of them.
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

    /// As the Event's `reason` has it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::TaintRemoved => "TaintRemoved",
            Self::TaintRemovedByOther => "TaintRemovedByOther",
            Self::RemovalWaiting => "RemovalWaiting",
            Self::RemovalDenied => "RemovalDenied",
            Self::TaintPutBack => "TaintPutBack",
            Self::PutBackDenied => "PutBackDenied",
            Self::DeadlineExceeded => "DeadlineExceeded",
            Self::TaintKeepsComingBack => "TaintKeepsComingBack",
            Self::ReloadFailed => "ReloadFailed",
        }
    }

    /// The Event's `type`: whether somebody should have a look.
    pub fn event_type(self) -> EventType {
        match self {
            Self::TaintRemoved | Self::RemovalWaiting => EventType::Normal,
            Self::TaintRemovedByOther
            | Self::RemovalDenied
            | Self::TaintPutBack
            | Self::PutBackDenied
            | Self::DeadlineExceeded
            | Self::TaintKeepsComingBack
            | Self::ReloadFailed => EventType::Warning,
        }
    }

    /// The Event's `action`: what was done, or tried.
    pub fn action(self) -> &'static str {
        match self {
            Self::RemovalWaiting | Self::DeadlineExceeded => "WaitForGates",
            Self::TaintRemoved
            | Self::TaintRemovedByOther
            | Self::RemovalDenied
            | Self::TaintKeepsComingBack => "RemoveTaint",
            Self::TaintPutBack | Self::PutBackDenied => "PutTaintBack",
            Self::ReloadFailed => "ReloadConfiguration",
        }
    }
}

/// The Event of a notice, if it is worth one; an Event is a write, so a dry run has none. Pure.
pub fn event(notice: &Notification) -> Option<Event> {
    let Notification {
        rule,
        taint,
        waits_for,
        ..
    } = notice;
    let (reason, note) = match &notice.event {
        _ if notice.dry_run => return None,
        RuleEvent::Tainted
        | RuleEvent::Undone { .. }
        | RuleEvent::RemovedByOther { ready: true } => return None,
        RuleEvent::Removed { taint, .. } => (
            Reason::TaintRemoved,
            format!("Removed the taint {} (rule {rule})", written(taint)),
        ),
        RuleEvent::RemovedUnanswered => (
            Reason::TaintRemoved,
            format!("Found the taint {taint} gone after a removal without an answer (rule {rule})"),
        ),
        RuleEvent::RemovedByOther { ready: false } => (
            Reason::TaintRemovedByOther,
            format!("Somebody else removed the taint {taint} before rule {rule} was ready"),
        ),
        RuleEvent::LongWait => (
            Reason::RemovalWaiting,
            format!("The taint {taint} is still there (rule {rule}): {waits_for}"),
        ),
        RuleEvent::PutBack => (
            Reason::TaintPutBack,
            format!("Put the taint {taint} back (rule {rule}): {waits_for}"),
        ),
        RuleEvent::Denied {
            action,
            taint,
            message,
        } => {
            let (reason, change) = match action {
                Action::Remove => (Reason::RemovalDenied, "removal"),
                Action::PutBack => (Reason::PutBackDenied, "return"),
            };
            let taint = written(taint);
            (
                reason,
                format!(
                    "The server refused the {change} of the taint {taint} (rule {rule}): {message}"
                ),
            )
        }
        RuleEvent::Deadline { after, action } => {
            let then = match action {
                DeadlineAction::Keep => "stays until every gate is open",
                DeadlineAction::Remove => "is removed all the same",
            };
            let after = after.as_secs_f64();
            (
                Reason::DeadlineExceeded,
                format!(
                    "The taint {taint} has been there for {after} s and {then} (rule {rule}): {waits_for}"
                ),
            )
        }
        RuleEvent::Fight => (
            Reason::TaintKeepsComingBack,
            format!(
                "Somebody keeps putting the taint {taint} back; it is removed less often now (rule {rule})"
            ),
        ),
    };
    Some(of(reason, &note))
}

/// The Event of a configuration file that is bad, with these problems, one a line. Pure.
pub fn bad_file(problems: &str) -> Event {
    let problems: Vec<_> = problems.lines().collect();
    let problems = problems.join("; ");
    let note = format!("The configuration is bad; the active one stays: {problems}");
    of(Reason::ReloadFailed, &note)
}

fn of(reason: Reason, note: &str) -> Event {
    Event {
        type_: reason.event_type(),
        reason: reason.as_str().into(),
        // What gates and servers say, and what is in files, is not in our hands.
        note: Some(printable_bytes(note, MAX_NOTE)),
        action: reason.action().into(),
        secondary: None,
    }
}

/// `KEY[=VALUE]:EFFECT`, as `kubectl taint` writes it.
fn written(taint: &Taint) -> String {
    let Taint { key, effect, .. } = taint;
    match taint.value.as_deref().unwrap_or_default() {
        "" => format!("{key}:{effect}"),
        value => format!("{key}={value}:{effect}"),
    }
}

#[cfg(test)]
mod tests;
