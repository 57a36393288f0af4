//! When a rule's condition is written. Never in the way of a change of taints.

use std::time::{Duration, Instant};

use jiff::Timestamp;
use serde_json::Value;

use super::RuleRunner;
use crate::api::ApiError;
use crate::backoff::Backoff;
use crate::gate::NodeFreshness;
use crate::node::view::NodeView;
use crate::rate_limit::TokenBucket;
use crate::rule::PublishedCondition;

/// A write that fails, for want of a permission say, is repeated after a time that doubles from the first to the second.
const RETRY_BASE: Duration = Duration::from_secs(1);
const RETRY_CAP: Duration = Duration::from_mins(1);
/// From one write to the next where only the message is new: a number in it, say, that changes with every look.
const NEW_WORDS: Duration = Duration::from_mins(1);

/// For how long gates must have been unknown before that is told: a watch that breaks is up again within less, and who
/// acts on conditions is not to act on that. The node controller waits as long for a kubelet.
const UNKNOWN_GRACE: Duration = Duration::from_secs(40);

/// The writes of one condition.
pub(super) struct Publication {
    /// A gate that flaps must not fill the API server.
    tokens: TokenBucket,
    backoff: Backoff,
    /// Since the last write failed.
    not_before: Option<Instant>,
    /// Why that one failed, until there is nothing to write.
    failure: Option<String>,
    written_at: Option<Instant>,
    /// Since when there has been nothing to tell but that.
    unknown_since: Option<Instant>,
    /// When the next write is due, where it waits for nothing else.
    due_at: Option<Instant>,
}

impl Publication {
    pub(super) fn new() -> Self {
        Self {
            tokens: TokenBucket::WRITES,
            backoff: Backoff::new(RETRY_BASE),
            not_before: None,
            failure: None,
            written_at: None,
            unknown_since: None,
            due_at: None,
        }
    }

    /// The patch that is due now, if there is one. `leftover`: see [`PublishedCondition::patch`]. `asked`: not before, as the server
    /// has it.
    fn next(
        &mut self,
        now: Instant,
        node: &NodeView,
        told: &PublishedCondition,
        leftover: bool,
        asked: Option<Instant>,
    ) -> Option<Value> {
        let unknown = told.status == "Unknown";
        self.unknown_since = unknown.then(|| self.unknown_since.unwrap_or(now));
        let Some(patch) = told.patch(node, leftover, Timestamp::now()) else {
            self.failure = None;
            return None;
        };
        let unknown = self.unknown_since.map(|since| since + UNKNOWN_GRACE);
        let words = self.written_at.map(|written| written + NEW_WORDS);
        let words = words.filter(|_| told.differs_in_words_alone(node));
        let waits = [
            self.not_before,
            asked,
            self.tokens.next_at(now),
            words,
            unknown,
        ];
        match waits.into_iter().flatten().max().filter(|time| *time > now) {
            Some(time) => {
                self.due_at = Some(time);
                None
            }
            None => Some(patch),
        }
    }

    fn sent(&mut self, now: Instant, failure: Option<&ApiError>) {
        self.tokens.take(now);
        self.failure = failure.map(ToString::to_string);
        if failure.is_none() {
            self.backoff.reset();
            self.not_before = None;
            self.written_at = Some(now);
        } else {
            self.not_before = Some(now + self.backoff.next(RETRY_CAP));
        }
    }
}

impl RuleRunner {
    /// The condition's type and the patch that is due now, if there is one.
    pub(in crate::agent) fn next_condition(
        &mut self,
        now: Instant,
        node: Option<&NodeView>,
        freshness: &NodeFreshness,
        not_before: Option<Instant>,
    ) -> Option<(String, Value)> {
        self.publication.due_at = None;
        let Some((told, node)) = self.told(now).zip(node) else {
            self.publication.failure = None;
            return None;
        };
        let is_stale = freshness.stale_conditions.contains_key(&told.kind);
        let patch = self
            .publication
            .next(now, node, &told, is_stale, not_before);
        // It also changes when every gate has been open for long enough.
        let stable_at = self.state.stable_at().filter(|stable| *stable > now);
        let times = [self.publication.due_at, stable_at];
        self.publication.due_at = times.into_iter().flatten().min();
        Some((told.kind, patch?))
    }

    /// When there may be a condition to write by time alone.
    pub(in crate::agent) fn condition_at(&self) -> Option<Instant> {
        self.publication.due_at
    }

    /// The credentials have changed: a write that failed with those before is no reason to wait.
    pub(in crate::agent) fn credentials_renewed(&mut self) {
        self.publication.not_before = None;
    }

    /// Whether the rule writes the condition of this type.
    pub(in crate::agent) fn publishes(&self, kind: &str) -> bool {
        let mine = self.rule().publish_condition.as_ref();
        mine.is_some_and(|mine| mine.kind == kind) && !self.rule().dry_run
    }

    /// Why the rule's condition is not written.
    pub(super) fn publish_failure(&self) -> Option<&str> {
        self.publication.failure.as_deref()
    }

    /// What is to be told; nothing before every gate has been evaluated.
    fn told(&self, now: Instant) -> Option<PublishedCondition> {
        let rule = self.rule();
        let condition = rule.publish_condition.as_ref()?;
        if rule.dry_run || !self.state.runs_gates() || !self.gates.are_evaluated() {
            return None;
        }
        let (gates, stable) = (self.gates.together(), self.state.is_stable(now));
        let waits_for = self.gates.waits_for();
        Some(PublishedCondition::new(
            &condition.kind,
            gates,
            stable,
            &waits_for,
        ))
    }

    /// The condition of this type was written, or could not be for this reason.
    pub(in crate::agent) fn condition_written(
        &mut self,
        now: Instant,
        kind: &str,
        failure: Option<&ApiError>,
    ) {
        if self.publishes(kind) {
            self.publication.sent(now, failure);
        }
    }
}

#[cfg(test)]
mod tests;
