//! Counters and histograms of the rules, from notifications.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use prometheus_client::encoding::DescriptorEncoder;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::histogram::Histogram;

use super::family;
use crate::rule::{Notification, RuleEvent};

/// Seconds from the first sight of a taint. A node takes seconds to minutes to be ready, and the default deadline is 600 s.
/// Each bucket is a series per rule and node, so there are few.
const SEEN_BUCKETS: [f64; 10] = [0.5, 1.0, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 600.0, 1800.0];
/// Seconds from when a rule was ready: milliseconds for the write alone, seconds if it was refused or had no answer, minutes
/// while Karpenter has not registered the node.
const READY_BUCKETS: [f64; 8] = [0.01, 0.025, 0.1, 0.5, 2.5, 10.0, 60.0, 600.0];

type Pick<T> = fn(&RuleCounts) -> T;

const COUNTERS: [(&str, &str, Pick<u64>); 6] = [
    (
        "untaint_rule_removals",
        "Taints that untaint removed, including removals that the API server did not answer.",
        |rule| rule.removals,
    ),
    (
        "untaint_rule_removals_by_others",
        "Times that another program removed the taint before the rule was ready.",
        |rule| rule.removals_by_others,
    ),
    (
        "untaint_rule_denials",
        "Changes of the taint that the API server refused; each try counts.",
        |rule| rule.denials,
    ),
    (
        "untaint_rule_fights",
        "Times that untaint slowed down because the taint came back again and again.",
        |rule| rule.fights,
    ),
    (
        "untaint_rule_deadlines",
        "Times that the taint was there for longer than the rule's deadline.",
        |rule| rule.deadlines,
    ),
    (
        "untaint_rule_put_backs",
        "Times that untaint put the taint back because a gate was closed.",
        |rule| rule.put_backs,
    ),
];

const HISTOGRAMS: [(&str, &str, Pick<Histogram>); 2] = [
    (
        "untaint_rule_seen_to_removed_seconds",
        "Time from when untaint first saw a taint to when untaint removed it.",
        |rule| rule.since_seen.clone(),
    ),
    (
        "untaint_rule_ready_to_removed_seconds",
        "Time from when the rule was ready to when untaint removed the taint.",
        |rule| rule.since_ready.clone(),
    ),
];

/// The counters and histograms of each rule. Clones share them.
#[derive(Debug, Clone, Default)]
pub struct Counters(Arc<Mutex<BTreeMap<String, RuleCounts>>>);

#[derive(Debug)]
struct RuleCounts {
    removals: u64,
    removals_by_others: u64,
    denials: u64,
    fights: u64,
    deadlines: u64,
    put_backs: u64,
    since_seen: Histogram,
    since_ready: Histogram,
}

impl Default for RuleCounts {
    fn default() -> Self {
        Self {
            removals: 0,
            removals_by_others: 0,
            denials: 0,
            fights: 0,
            deadlines: 0,
            put_backs: 0,
            since_seen: Histogram::new(SEEN_BUCKETS),
            since_ready: Histogram::new(READY_BUCKETS),
        }
    }
}

impl Counters {
    /// Starts to count what happens to this rule, from 0.
    pub fn begin(&self, rule: &str) {
        self.rules().insert(rule.to_owned(), RuleCounts::default());
    }

    /// Removes the metrics of this rule.
    pub fn forget(&self, rule: &str) {
        self.rules().remove(rule);
    }

    /// Counts what happened to a rule, unless it was forgotten.
    pub fn count(&self, notice: &Notification) {
        let mut rules = self.rules();
        let Some(rule) = rules.get_mut(&notice.rule) else {
            return;
        };
        match &notice.event {
            RuleEvent::Removed {
                since_seen,
                since_ready,
                ..
            } => {
                rule.removals += 1;
                observe(&rule.since_seen, *since_seen);
                observe(&rule.since_ready, *since_ready);
            }
            RuleEvent::RemovedUnanswered => rule.removals += 1,
            RuleEvent::RemovedByOther { ready: false } => rule.removals_by_others += 1,
            RuleEvent::Denied { .. } => rule.denials += 1,
            RuleEvent::Fight => rule.fights += 1,
            RuleEvent::Deadline { .. } => rule.deadlines += 1,
            RuleEvent::PutBack => rule.put_backs += 1,
            RuleEvent::Tainted
            | RuleEvent::Undone { .. }
            | RuleEvent::LongWait
            | RuleEvent::RemovedByOther { ready: true } => {}
        }
    }

    pub(super) fn encode(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let rules = self.rules();
        let labelled = || {
            rules
                .iter()
                .map(|(rule, counts)| ([("rule", rule.as_str())], counts))
        };
        for (name, help, pick) in COUNTERS {
            let series = labelled().map(|(label, counts)| (label, ConstCounter::new(pick(counts))));
            family(encoder, name, help, series)?;
        }
        for (name, help, pick) in HISTOGRAMS {
            let series = labelled().map(|(label, counts)| (label, pick(counts)));
            family(encoder, name, help, series)?;
        }
        Ok(())
    }

    fn rules(&self) -> MutexGuard<'_, BTreeMap<String, RuleCounts>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn observe(histogram: &Histogram, duration: Option<Duration>) {
    if let Some(duration) = duration {
        histogram.observe(duration.as_secs_f64());
    }
}
