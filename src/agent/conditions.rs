//! The writes of conditions. They never delay a change of taints.

use std::time::Instant;

use tracing::{debug, info, warn};

use super::Agent;
use crate::backoff::jittered;
use crate::node::{self, Answer, Next};
use crate::rate_limit::RepeatFilter;
use crate::rule::publication::ConditionWrite;

/// What the writes of all conditions share.
#[derive(Default)]
pub(super) struct ConditionWrites {
    /// The server asks for no write before this time.
    not_before: Option<Instant>,
    failure: RepeatFilter,
}

impl ConditionWrites {
    fn answered(&mut self, now: Instant, condition: &str, answer: &Answer) {
        match answer {
            Ok(_) if self.failure.end() => info!(condition, "conditions can be published again"),
            Ok(_) => debug!(condition, "published a condition"),
            Err(error) => {
                let asked = error.retry_after().map(|asked| now + jittered(asked));
                self.not_before = asked.or(self.not_before);
                let error = error.to_string();
                if self.failure.should_log(now, &error) {
                    warn!(
                        condition,
                        error, "failed to publish a condition; trying again"
                    );
                }
            }
        }
    }

    pub(super) fn retry_now(&mut self) {
        self.not_before = None;
    }
}

impl Agent<'_> {
    pub(super) fn send_condition(&mut self, now: Instant) {
        if !self.slots.conditions.is_idle() {
            return;
        }
        let (node, not_before) = (self.latest.get(), self.condition_writes.not_before);
        let rules = self.rules.iter_mut();
        let next = rules.fold(Next::Wait(None), |next, rule| {
            next.or_else(|| rule.next_condition(now, node, &self.freshness, not_before))
        });
        let (api, name) = (self.api, &self.options.node_name);
        self.slots.conditions.send_or_wait(next, |write| {
            node::patch_status(api, name, write.uid.clone(), write.patch.clone())
        });
    }

    pub(super) fn condition_answered(&mut self, write: &ConditionWrite, answer: Answer) {
        let now = Instant::now();
        self.condition_writes.answered(now, &write.kind, &answer);
        for rule in &mut self.rules {
            rule.condition_answered(now, &write.kind, answer.as_ref().err());
        }
        if answer.is_ok() {
            self.connection.request_succeeded();
        }
        self.observe_answer(&write.uid, answer);
    }

    pub(super) fn cancel_unwanted_condition(&mut self) {
        let rules = &self.rules;
        self.slots
            .conditions
            .cancel_unless(|write| rules.iter().any(|rule| rule.publishes(&write.kind)));
    }
}
