//! What happens to a rule: for the log, the counters and the Events. Pure.

use std::time::Duration;

use k8s_openapi::api::core::v1::Taint;

use crate::config::DeadlineAction;
use crate::node::patch::Action;
use crate::node::writes::Denied;

/// An event of a rule, with what a reader needs to understand it.
#[derive(Debug, Clone, PartialEq)]
pub struct Notification {
    pub rule: String,
    /// `KEY[=VALUE][:EFFECT]`, as the rule has it.
    pub taint: String,
    pub dry_run: bool,
    /// The `metadata.uid` of the Node; `None` before the first one is seen.
    pub node_uid: Option<String>,
    /// What keeps the taint on the Node: the gates that are not open with their reasons or, if all are open, what else.
    pub waits_for: String,
    /// The gate that was the last to open: see [`crate::gate::run::RuleGates::last_to_open`].
    pub last_gate: Option<String>,
    pub event: RuleEvent,
}

impl Notification {
    /// How long a removed taint was there, in seconds with three decimals: from when the agent first saw it. `None` for
    /// other events.
    pub fn waited_seconds(&self) -> Option<f64> {
        let (RuleEvent::Removed { since_seen, .. } | RuleEvent::RemovedUnanswered { since_seen }) =
            self.event
        else {
            return None;
        };
        since_seen.map(|waited| (waited.as_secs_f64() * 1000.0).round() / 1000.0)
    }
}

/// The end of a sentence about a removal, with its [`Notification::waited_seconds`] and the gate that was the last to open.
/// Short times are all the same, so that Events about a taint that comes back again and again are repetitions.
pub fn wait_in_words(waited_seconds: Option<f64>, last_gate: Option<&str>) -> String {
    let waited = waited_seconds.map(|waited| match waited {
        ..1.0 => " in less than 1 s".into(),
        _ => format!(" after {waited:.1} s"),
    });
    let gate = last_gate.map(|gate| format!("; gate {gate:?} was the last to open"));
    waited.unwrap_or_default() + &gate.unwrap_or_default()
}

#[derive(Debug, Clone, PartialEq)]
pub enum RuleEvent {
    /// The Node has the taint. The agent did not put it there.
    Tainted,
    /// The agent removed the taint.
    Removed {
        taint: Taint,
        /// Since the taint was first seen.
        since_seen: Option<Duration>,
        /// Since the rule was ready; `None` where it failed open.
        since_ready: Option<Duration>,
    },
    /// The agent removed a taint that it had put back, because no rule for this Node names it now.
    TakenOff {
        taint: Taint,
    },
    /// The server accepted the change, but the Node in its answer is as before.
    Undone {
        action: Action,
        taint: Taint,
    },
    /// The taint is absent after a removal whose answer was lost. Most likely, the agent removed it.
    RemovedUnanswered {
        /// As [`Self::Removed`] has it, until the agent saw that the taint is gone.
        since_seen: Option<Duration>,
    },
    /// The taint has been on the Node for a long time.
    LongWait,
    /// Another program removed the taint.
    RemovedByOther {
        /// Whether the rule was ready by then. If not, the removal was too early.
        ready: bool,
    },
    /// Another program gave the taint a value that the rule does not match.
    ReplacedByOther {
        /// As [`Self::RemovedByOther`] has it.
        ready: bool,
        /// What the Node has now.
        by: Taint,
    },
    /// The agent put the taint back because a gate has closed.
    PutBack,
    Denied(Denied),
    /// The taint comes back as often as the agent removes it.
    Fight,
    /// The taint has been on the Node for the whole of `deadline.after`.
    Deadline {
        after: Duration,
        action: DeadlineAction,
    },
}
