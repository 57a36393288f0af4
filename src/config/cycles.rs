//! Rules that wait for conditions which rules publish. In a circle, none could ever change. And such a condition has no
//! age, because it is written only when it changes.

use std::collections::HashSet;

use super::cursor::Cursor;
use super::types::{Check, Gate, Observation, Rule};
use super::{NodeCondition, ObservedObject};

/// A rule that publishes a condition.
pub(super) struct Publisher<'t> {
    /// Where it says so.
    pub(super) at: Cursor<'t>,
    /// The condition's type.
    pub(super) publishes: String,
    /// The types of the conditions that its gates wait for.
    pub(super) waits_for: Vec<String>,
}

impl<'t> Publisher<'t> {
    pub(super) fn new(at: Cursor<'t>, publishes: String, gates: &[Gate]) -> Self {
        let waits_for = node_conditions(gates).map(|condition| condition.kind.clone());
        Self {
            at,
            publishes,
            waits_for: waits_for.collect(),
        }
    }
}

fn node_conditions(gates: &[Gate]) -> impl Iterator<Item = &NodeCondition> {
    let conditions = gates.iter().flat_map(Gate::checks);
    conditions.filter_map(|condition| match condition {
        Check::Observation(Observation {
            object: ObservedObject::NodeCondition(condition),
            ..
        }) => Some(condition),
        _ => None,
    })
}

/// Reports each publisher of a condition to which a gate gives a `maxAge`.
pub(super) fn check_ages(publishers: &[Publisher<'_>], rules: &[Rule]) {
    for publisher in publishers {
        let has_an_age = |condition: &NodeCondition| {
            condition.kind == publisher.publishes && condition.max_age.is_some()
        };
        let mut rules = rules.iter();
        if let Some(rule) = rules.find(|rule| node_conditions(&rule.gates).any(has_an_age)) {
            publisher.at.report_key(format!(
                "names a condition to which a gate of rule {} gives a maxAge: untaint writes it only when it changes",
                rule.name
            ));
        }
    }
}

/// Reports each publisher that waits, through others or not, for its own condition.
pub(super) fn check(publishers: &[Publisher<'_>]) {
    for publisher in publishers {
        let mut known = HashSet::new();
        let mut waits_for: Vec<&str> = publisher.waits_for.iter().map(String::as_str).collect();
        while let Some(kind) = waits_for.pop() {
            if kind == publisher.publishes {
                publisher.at.report_key(
                    "names a condition that the gates of the same rule wait for, if only through other rules: \
                     none of them could ever change",
                );
                break;
            }
            if known.insert(kind) {
                let of_kind = publishers.iter().filter(|other| other.publishes == kind);
                waits_for
                    .extend(of_kind.flat_map(|other| other.waits_for.iter().map(String::as_str)));
            }
        }
    }
}
