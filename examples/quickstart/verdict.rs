//! Compares what happened with what was expected. Pure.

mod follow;
mod requests;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;
use untaint::gate::State;

pub(crate) use requests::{Request, verb};

/// What happened, from the servers, the scene and the agent.
pub(crate) struct Record {
    /// The changes, in order.
    pub(crate) events: Vec<Event>,
    /// All requests to the API server.
    pub(crate) requests: Vec<Request>,
    /// The rules that were overdue in `/statusz` at the end.
    pub(crate) overdue: Vec<String>,
}

#[derive(Clone)]
pub(crate) struct Event {
    /// The time since the start.
    pub(crate) at: Duration,
    pub(crate) what: What,
}

#[derive(Clone)]
pub(crate) enum What {
    /// The API server stored the Node with these taints.
    Stored(Vec<String>),
    /// The condition of this gate holds, or no longer holds.
    Fact { gate: Gate, holds: bool },
    /// The agent found this gate in this state.
    Found {
        rule: String,
        gate: String,
        state: State,
    },
    /// The agent logged that the taint of this rule has been there for too long.
    Overdue(String),
}

/// A gate, by the name of its rule and its own name.
#[derive(Clone, Copy)]
pub(crate) struct Gate {
    pub(crate) rule: &'static str,
    pub(crate) name: &'static str,
}

/// What is expected.
pub(crate) struct Expected {
    pub(crate) rules: &'static [ExpectedRule],
    /// The foreign taints, in order. The Node has them at all times.
    pub(crate) foreign: &'static [&'static str],
    /// The paths of the watches. There is one request for each.
    pub(crate) watched: &'static [&'static str],
    /// The path of the patches. There is one request for each removal.
    pub(crate) patched: &'static str,
}

/// What is expected of one rule.
pub(crate) struct ExpectedRule {
    pub(crate) name: &'static str,
    pub(crate) taint: &'static str,
    /// The gates that must be open before each removal.
    pub(crate) gates: &'static [Gate],
    pub(crate) fate: Fate,
}

/// The expected result for a taint.
#[derive(Clone, Copy)]
pub(crate) enum Fate {
    /// It is removed, and comes back in between.
    Removed { times: usize },
    /// It stays, and is reported at the deadline.
    Kept { deadline: Duration },
}

/// One removal of a taint.
pub(crate) struct Removal {
    /// The gates that the agent had found open before the removal, and since when.
    pub(crate) opened: BTreeMap<String, Duration>,
    /// When the API server stored the Node without the taint.
    pub(crate) gone: Duration,
}

impl Removal {
    /// The last gate that opened, and how long before.
    pub(crate) fn last_gate(&self) -> Option<(&str, Duration)> {
        let (gate, at) = self.opened.iter().max_by_key(|(_, at)| **at)?;
        Some((gate, self.gone.saturating_sub(*at)))
    }
}

/// The result for a rule.
#[derive(Default)]
pub(crate) struct Outcome {
    pub(crate) removals: Vec<Removal>,
    /// When the agent reported the deadline.
    pub(crate) reports: Vec<Duration>,
    /// Since when the Node has the taint, if it has it at the end.
    pub(crate) tainted: Option<Duration>,
}

/// The result for a record.
pub(crate) struct Verdict {
    /// In the order of the expected rules.
    pub(crate) outcomes: Vec<Outcome>,
    /// The differences from what is expected. It is empty on success.
    pub(crate) problems: Vec<String>,
}

/// Compares what happened with what was expected.
pub(crate) fn judge(record: &Record, expected: &Expected) -> Verdict {
    let mut problems = foreign_taints(&record.events, expected);
    let outcomes = expected.rules.iter().map(|rule| {
        let (outcome, wrong) = follow::judge(rule, &record.events, &record.overdue);
        problems.extend(wrong);
        outcome
    });
    let outcomes: Vec<_> = outcomes.collect();
    let removals = outcomes.iter().map(|outcome| outcome.removals.len()).sum();
    problems.extend(requests::judge(&record.requests, expected, removals));
    Verdict { outcomes, problems }
}

/// Checks that every version of the Node has the same foreign taints.
fn foreign_taints(events: &[Event], expected: &Expected) -> Vec<String> {
    let own: BTreeSet<_> = expected.rules.iter().map(|rule| rule.taint).collect();
    let wrong = events.iter().filter_map(|Event { at, what }| {
        let What::Stored(taints) = what else {
            return None;
        };
        let others = taints.iter().map(String::as_str);
        let others: Vec<_> = others.filter(|taint| !own.contains(taint)).collect();
        let wanted = expected.foreign;
        (others != wanted).then(|| {
            format!(
                "{}: the other taints are {others:?} instead of {wanted:?}",
                when(*at)
            )
        })
    });
    wrong.collect()
}

/// The time, as in the first column of the timeline.
fn when(time: Duration) -> String {
    format!("{} ms", time.as_millis())
}

#[cfg(test)]
mod tests;
