//! Whether what happened is what should have. Pure.

mod follow;
mod requests;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;
use untaint::gate::State;

pub(crate) use requests::{Request, verb};

/// What happened, as the servers, the scene and the agent tell it.
pub(crate) struct Record {
    /// In their order.
    pub(crate) events: Vec<Event>,
    /// All that the API server got.
    pub(crate) requests: Vec<Request>,
    /// The rules that `/statusz` called overdue in the end.
    pub(crate) overdue: Vec<String>,
}

/// A change.
#[derive(Clone)]
pub(crate) struct Event {
    /// Since the start.
    pub(crate) at: Duration,
    pub(crate) what: What,
}

/// What has changed.
#[derive(Clone)]
pub(crate) enum What {
    /// The API server stored the Node with these taints.
    Stored(Vec<String>),
    /// What this gate asks for is so, or is no longer.
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

/// A gate, by its rule's name and its own.
#[derive(Clone, Copy)]
pub(crate) struct Gate {
    pub(crate) rule: &'static str,
    pub(crate) name: &'static str,
}

/// What should have happened.
pub(crate) struct Expected {
    pub(crate) rules: &'static [ExpectedRule],
    /// The taints of others, in their order, on the Node at all times.
    pub(crate) foreign: &'static [&'static str],
    /// The paths of what is watched, each by one request.
    pub(crate) watched: &'static [&'static str],
    /// The path of what is patched, by one request a removal.
    pub(crate) patched: &'static str,
}

/// The part of one rule.
pub(crate) struct ExpectedRule {
    pub(crate) name: &'static str,
    pub(crate) taint: &'static str,
    /// To be open before each removal.
    pub(crate) gates: &'static [Gate],
    pub(crate) fate: Fate,
}

/// What is to become of a taint.
#[derive(Clone, Copy)]
pub(crate) enum Fate {
    /// It goes, and comes back in between.
    Removed { times: usize },
    /// It stays, and at the deadline that is told of.
    Kept { deadline: Duration },
}

/// One time that a taint went.
pub(crate) struct Removal {
    /// The gates that the agent had found open by then, and since when.
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

/// What became of a rule.
#[derive(Default)]
pub(crate) struct Outcome {
    pub(crate) removals: Vec<Removal>,
    /// When the agent told of the deadline.
    pub(crate) reports: Vec<Duration>,
    /// Since when the taint has been there, if it was in the end.
    pub(crate) tainted: Option<Duration>,
}

/// What is to be said of a record.
pub(crate) struct Verdict {
    /// In the order of the expected rules.
    pub(crate) outcomes: Vec<Outcome>,
    /// Whatever is not as expected; if there is nothing, all is well.
    pub(crate) problems: Vec<String>,
}

/// Compares what happened with what should have.
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

/// Whenever the Node was stored, the taints that no rule is about were there, and as they were.
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

/// As in the first column of the timeline.
fn when(time: Duration) -> String {
    format!("{} ms", time.as_millis())
}

#[cfg(test)]
mod tests;
