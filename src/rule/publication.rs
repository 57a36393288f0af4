//! When a rule's condition is written. Pure.

use std::time::{Duration, Instant};

use jiff::Timestamp;
use serde_json::Value;

use super::PublishedCondition;
use crate::api::ApiError;
use crate::backoff::Backoff;
use crate::node::Next;
use crate::node::view::NodeView;
use crate::rate_limit::TokenBucket;

/// The wait after a failed write, for example without the permission, doubles from the first to the second.
const RETRY_BASE: Duration = Duration::from_secs(1);
const RETRY_CAP: Duration = Duration::from_mins(1);
/// The time between two writes if only the message is new. It may have a number that changes with every evaluation.
const MESSAGE_PERIOD: Duration = Duration::from_mins(1);

/// How long gates must have been unknown before the condition is `Unknown`. A broken watch is up again in less time, and
/// programs that act on conditions must not act on that. The node controller waits for a kubelet about as long: 40 s, and
/// 50 s from Kubernetes 1.32 on.
pub(super) const UNKNOWN_GRACE: Duration = Duration::from_secs(40);

/// The writes of one condition.
#[derive(Debug)]
pub struct Publication {
    /// A gate that flaps must not fill the API server.
    tokens: TokenBucket,
    backoff: Backoff,
    /// Since the last write failed.
    retry_at: Option<Instant>,
    failure: Option<String>,
    written_at: Option<Instant>,
    /// Since when the condition to write has been `Unknown`.
    unknown_since: Option<Instant>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct ConditionWrite {
    /// The condition's type.
    pub kind: String,
    /// Of the Node.
    pub uid: String,
    /// A strategic merge patch of `nodes/status`.
    pub patch: Value,
}

impl Default for Publication {
    fn default() -> Self {
        Self {
            tokens: TokenBucket::WRITES,
            backoff: Backoff::new(RETRY_BASE),
            retry_at: None,
            failure: None,
            written_at: None,
            unknown_since: None,
        }
    }
}

impl Publication {
    /// What to do about `condition` on `node`. `clock`: now. `stale` is as for [`PublishedCondition::patch`]. The server
    /// asks for no write before `not_before`.
    pub fn next(
        &mut self,
        now: Instant,
        clock: Timestamp,
        node: &NodeView,
        condition: &PublishedCondition,
        stale: bool,
        not_before: Option<Instant>,
    ) -> Next<ConditionWrite> {
        let unknown = condition.status == "Unknown";
        self.unknown_since = unknown.then(|| self.unknown_since.unwrap_or(now));
        let Some(patch) = condition.patch(node, stale, clock) else {
            self.failure = None;
            return Next::Wait(None);
        };
        let message_at = self.written_at.map(|written| written + MESSAGE_PERIOD);
        let waits = [
            self.retry_at,
            not_before,
            self.tokens.next_at(now),
            message_at.filter(|_| condition.differs_in_message_only(node)),
            self.unknown_since.map(|since| since + UNKNOWN_GRACE),
        ];
        match waits.into_iter().flatten().max() {
            Some(time) if time > now => Next::Wait(Some(time)),
            _ => Next::Send(ConditionWrite {
                kind: condition.kind.clone(),
                uid: node.metadata.uid.clone(),
                patch,
            }),
        }
    }

    /// There is nothing to write: there is no Node, or no condition for it.
    pub fn nothing_to_write(&mut self) {
        self.failure = None;
    }

    /// The answer to [`Next::Send`].
    pub fn answered(&mut self, now: Instant, failure: Option<&ApiError>) {
        self.tokens.take(now);
        self.failure = failure.map(ToString::to_string);
        if failure.is_none() {
            self.backoff.reset();
            self.retry_at = None;
            self.written_at = Some(now);
        } else {
            self.retry_at = Some(now + self.backoff.next(RETRY_CAP));
        }
    }

    /// Ends the wait after a failure.
    pub fn retry_now(&mut self) {
        self.retry_at = None;
    }

    /// Why the last write failed; `None` once there is nothing to write.
    pub fn failure(&self) -> Option<&str> {
        self.failure.as_deref()
    }
}

#[cfg(test)]
mod tests;
