//! The writes of conditions, beside the changes of taints and never in their way.

use std::time::Instant;

use tracing::{debug, info, warn};

use super::Agent;
use super::pending::{Answer, Pending};
use crate::api::ApiError;
use crate::backoff::jittered;
use crate::node;
use crate::rate_limit::RepeatFilter;

/// The write of a condition.
pub(super) struct ConditionWrite {
    /// The condition's type.
    kind: String,
    /// Of the Node.
    uid: String,
}

/// What the writes of all conditions share.
#[derive(Default)]
pub(super) struct ConditionWrites {
    /// Not before, as the server has it.
    not_before: Option<Instant>,
    /// Whether the last one failed because the credentials were refused.
    refused: bool,
    failure: RepeatFilter,
}

impl ConditionWrites {
    fn take(&mut self, now: Instant, condition: &str, answer: &Answer) {
        let error = answer.as_ref().err();
        self.refused = error.is_some_and(ApiError::refuses_credentials);
        match answer {
            Ok(_) if self.failure.end() => info!(condition, "published a condition again"),
            Ok(_) => debug!(condition, "published a condition"),
            Err(error) => {
                let asked = error.retry_after().map(|asked| now + jittered(asked));
                self.not_before = asked.or(self.not_before);
                let error = error.to_string();
                if self.failure.is_news(now, &error) {
                    warn!(
                        condition,
                        error, "failed to publish a condition; trying again"
                    );
                }
            }
        }
    }

    pub(super) fn are_refused(&self) -> bool {
        self.refused
    }

    /// A wait that the server asked for applied to the credentials before these.
    pub(super) fn credentials_renewed(&mut self) {
        if std::mem::take(&mut self.refused) {
            self.not_before = None;
        }
    }
}

impl<'a> Agent<'a> {
    /// Starts the write of the first condition that is due now, if there is one.
    pub(super) fn next_condition(&mut self, now: Instant) -> Pending<'a, ConditionWrite> {
        let node = self.latest.get();
        let mut due = self.rules.iter_mut();
        let (freshness, not_before) = (&self.freshness, self.conditions.not_before);
        let due = due.find_map(|rule| rule.next_condition(now, node, freshness, not_before));
        let Some(((kind, patch), node)) = due.zip(node) else {
            return Pending::NONE;
        };
        let uid = node.metadata.uid.clone();
        let write = ConditionWrite {
            kind,
            uid: uid.clone(),
        };
        let (api, name) = (self.api, self.node_name.clone());
        Pending::new(write, async move {
            node::patch_status(api, &name, &uid, &patch).await
        })
    }

    /// Takes in the answer.
    pub(super) fn take_condition(&mut self, write: &ConditionWrite, answer: Answer) {
        let now = Instant::now();
        self.conditions.take(now, &write.kind, &answer);
        for rule in &mut self.rules {
            rule.condition_written(now, &write.kind, answer.as_ref().err());
        }
        match answer {
            Ok(node) => {
                self.connection.request_succeeded();
                self.offer_answer(&write.uid, node);
            }
            Err(error) if error.is_not_found() => self.gone(&write.uid),
            Err(error) => self.request_failed(&error),
        }
    }

    /// Whether a rule still wants it.
    pub(super) fn wants(&self, write: &ConditionWrite) -> bool {
        self.rules.iter().any(|rule| rule.publishes(&write.kind))
    }
}
