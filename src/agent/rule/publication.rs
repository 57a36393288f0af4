//! When a rule's condition is written. Never in the way of a change of taints.

use std::time::{Duration, Instant};

use jiff::Timestamp;
use serde_json::Value;
use tracing::{debug, info, warn};

use super::super::calls::Answer;
use super::RuleAtWork;
use crate::backoff::{Backoff, jittered};
use crate::logging::Repetition;
use crate::node::condition::Published;
use crate::node::view::NodeView;
use crate::tokens::Tokens;

/// A write that fails, for want of a permission say, is repeated after a time that doubles from the first to the second.
const RETRY_BASE: Duration = Duration::from_secs(1);
const RETRY_CAP: Duration = Duration::from_mins(1);
/// From one write to the next where only the message is new: a number in it, say, that changes with every look.
const NEW_WORDS: Duration = Duration::from_mins(1);

/// The writes of one condition.
pub(super) struct Publication {
    /// A gate that flaps must not fill the API server.
    tokens: Tokens,
    backoff: Backoff,
    not_before: Option<Instant>,
    written_at: Option<Instant>,
    failure: Repetition,
    /// When the next write is due, where it waits for nothing else.
    due_at: Option<Instant>,
}

impl Publication {
    pub(super) fn new() -> Self {
        Self {
            tokens: Tokens::WRITES,
            backoff: Backoff::new(RETRY_BASE),
            not_before: None,
            written_at: None,
            failure: Repetition::default(),
            due_at: None,
        }
    }

    /// The patch that is due now, if there is one.
    fn next(&mut self, now: Instant, node: &NodeView, told: &Published) -> Option<Value> {
        let patch = told.patch(node, Timestamp::now())?;
        let words = self.written_at.map(|written| written + NEW_WORDS);
        let words = words.filter(|_| told.differs_in_words_alone(node));
        let waits = [self.not_before, self.tokens.next_at(now), words];
        match waits.into_iter().flatten().max().filter(|time| *time > now) {
            Some(time) => {
                self.due_at = Some(time);
                None
            }
            None => Some(patch),
        }
    }

    fn sent(&mut self, now: Instant, rule: &str, condition: &str, answer: &Answer) {
        self.tokens.take(now);
        match answer {
            Ok(_) => {
                self.backoff.reset();
                self.not_before = None;
                self.written_at = Some(now);
                if self.failure.end() {
                    info!(rule, condition, "published the condition again");
                } else {
                    debug!(rule, condition, "published the condition");
                }
            }
            Err(error) => {
                let asked = error.retry_after().map_or(Duration::ZERO, jittered);
                self.not_before = Some(now + self.backoff.next(RETRY_CAP).max(asked));
                let error = error.to_string();
                if self.failure.is_news(now, &error) {
                    warn!(
                        rule,
                        condition, error, "failed to publish the condition; trying again"
                    );
                }
            }
        }
    }
}

impl RuleAtWork {
    /// The condition's type and the patch that is due now, if there is one.
    pub(in crate::agent) fn next_publication(
        &mut self,
        now: Instant,
        node: &NodeView,
    ) -> Option<(String, Value)> {
        self.publication.due_at = None;
        let told = self.published_state(now)?;
        let patch = self.publication.next(now, node, &told);
        // It also changes when every gate has been open for long enough.
        let stable_at = self.state.stable_at().filter(|stable| *stable > now);
        let times = [self.publication.due_at, stable_at];
        self.publication.due_at = times.into_iter().flatten().min();
        Some((told.kind, patch?))
    }

    /// When there may be something to publish by time alone.
    pub(in crate::agent) fn publish_at(&self) -> Option<Instant> {
        self.publication.due_at
    }

    /// What is to be told; nothing before every gate has been evaluated.
    fn published_state(&self, now: Instant) -> Option<Published> {
        let rule = self.rule();
        let condition = rule.publish_condition.as_ref()?;
        if rule.dry_run || !self.state.runs_gates() || !self.gates.are_evaluated() {
            return None;
        }
        let (gates, stable) = (self.gates.together(), self.state.is_stable(now));
        let waits_for = self.gates.waits_for();
        Some(Published::new(&condition.kind, gates, stable, &waits_for))
    }

    pub(in crate::agent) fn published(&mut self, now: Instant, condition: &str, answer: &Answer) {
        let mine = self.rule().publish_condition.as_ref();
        if mine.is_some_and(|mine| mine.kind == condition) {
            let rule = &self.state.rule().name;
            self.publication.sent(now, rule, condition, answer);
        }
    }
}
