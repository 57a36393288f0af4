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

/// Name, help, and whether an event of a rule counts.
type RuleCounter = (&'static str, &'static str, fn(&RuleEvent) -> bool);

const COUNTERS: [RuleCounter; 6] = [
    (
        "untaint_rule_removals",
        "Taints that untaint removed, including removals that the API server did not answer.",
        |event| {
            matches!(
                event,
                RuleEvent::Removed { .. }
                    | RuleEvent::RemovedUnanswered { .. }
                    | RuleEvent::TakenOff { .. }
            )
        },
    ),
    (
        "untaint_rule_removals_by_others",
        "Times that another program removed the taint before the rule was ready.",
        |event| {
            matches!(
                event,
                RuleEvent::RemovedByOther { ready: false }
                    | RuleEvent::ReplacedByOther { ready: false, .. }
            )
        },
    ),
    (
        "untaint_rule_denials",
        "Changes of the taint that the API server refused, or that failed when every try had failed for 10 s; each try counts.",
        |event| matches!(event, RuleEvent::Denied(_)),
    ),
    (
        "untaint_rule_fights",
        "Times that untaint slowed down because the taint came back again and again.",
        |event| matches!(event, RuleEvent::Fight),
    ),
    (
        "untaint_rule_deadlines",
        "Times that the taint was there for longer than the rule's deadline.",
        |event| matches!(event, RuleEvent::Deadline { .. }),
    ),
    (
        "untaint_rule_put_backs",
        "Times that untaint put the taint back because a gate was closed.",
        |event| matches!(event, RuleEvent::PutBack),
    ),
];

/// Name, help, buckets, and the duration of an event, if it has one.
type RuleHistogram = (
    &'static str,
    &'static str,
    &'static [f64],
    fn(&RuleEvent) -> Option<Duration>,
);

const HISTOGRAMS: [RuleHistogram; 2] = [
    (
        "untaint_rule_seen_to_removed_seconds",
        "Time from when untaint first saw a taint to when untaint removed it, or saw that it was gone after a removal without an answer.",
        &SEEN_BUCKETS,
        |event| match event {
            RuleEvent::Removed { since_seen, .. } | RuleEvent::RemovedUnanswered { since_seen } => {
                *since_seen
            }
            _ => None,
        },
    ),
    (
        "untaint_rule_ready_to_removed_seconds",
        "Time from when the rule was ready to when untaint removed the taint.",
        &READY_BUCKETS,
        |event| match event {
            RuleEvent::Removed { since_ready, .. } => *since_ready,
            _ => None,
        },
    ),
];

/// The counters and histograms of each rule. Clones share them.
#[derive(Debug, Clone, Default)]
pub struct Counters(Arc<Mutex<BTreeMap<String, RuleCounts>>>);

/// In the order of [`COUNTERS`] and [`HISTOGRAMS`].
#[derive(Debug)]
struct RuleCounts {
    counts: [u64; COUNTERS.len()],
    durations: [Histogram; HISTOGRAMS.len()],
}

impl Counters {
    /// Starts to count what happens to this rule, from 0.
    pub fn begin(&self, rule: &str) {
        let counts = RuleCounts {
            counts: [0; COUNTERS.len()],
            durations: HISTOGRAMS.map(|(_, _, buckets, _)| Histogram::new(buckets.iter().copied())),
        };
        self.rules().insert(rule.to_owned(), counts);
    }

    /// Removes the metrics of this rule.
    pub fn forget(&self, rule: &str) {
        self.rules().remove(rule);
    }

    /// Counts what happened to a rule, unless it was forgotten.
    pub fn count(&self, notification: &Notification) {
        let mut rules = self.rules();
        let Some(rule) = rules.get_mut(&notification.rule) else {
            return;
        };
        let event = &notification.event;
        for (count, (_, _, counts)) in rule.counts.iter_mut().zip(COUNTERS) {
            *count += u64::from(counts(event));
        }
        for (histogram, (_, _, _, duration)) in rule.durations.iter().zip(HISTOGRAMS) {
            if let Some(duration) = duration(event) {
                histogram.observe(duration.as_secs_f64());
            }
        }
    }

    pub(super) fn encode(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let rules = self.rules();
        let labelled = || {
            rules
                .iter()
                .map(|(rule, counts)| ([("rule", rule.as_str())], counts))
        };
        for (index, (name, help, _)) in COUNTERS.into_iter().enumerate() {
            let series =
                labelled().map(|(label, rule)| (label, ConstCounter::new(rule.counts[index])));
            family(encoder, name, help, series)?;
        }
        for (index, (name, help, ..)) in HISTOGRAMS.into_iter().enumerate() {
            let series = labelled().map(|(label, rule)| (label, rule.durations[index].clone()));
            family(encoder, name, help, series)?;
        }
        Ok(())
    }

    fn rules(&self) -> MutexGuard<'_, BTreeMap<String, RuleCounts>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
