//! `after`: which gates of a rule wait for which.

use std::collections::{BTreeMap, HashMap};

use super::Gate;
use crate::config::read::{Cursor, Fields, Value};
use crate::syntax::DNS_LABEL;

/// The order in which the gates of a rule are asked.
#[derive(Debug, Clone)]
pub struct Order {
    /// Of each gate, the indexes of the gates that must be open first.
    after: Vec<Vec<usize>>,
    /// The indexes of all gates. Each comes behind those that must be open first.
    sequence: Vec<usize>,
}

impl Order {
    pub fn of(gates: &[Gate]) -> Self {
        let index = |name: &String| gates.iter().position(|gate| gate.name() == name);
        let gates = gates.iter();
        let after: Vec<Vec<_>> = gates
            .map(|gate| gate.after.iter().filter_map(index).collect())
            .collect();
        Self {
            // A configuration with a circle is invalid.
            sequence: sequence(&after, |_| {}),
            after,
        }
    }

    /// The indexes of all gates. Each comes behind those that it waits for.
    pub fn sequence(&self) -> &[usize] {
        &self.sequence
    }

    /// The indexes of the gates that must be open before the gate with this `index` is asked.
    pub fn before(&self, index: usize) -> &[usize] {
        &self.after[index]
    }
}

/// Calls `on_circle` with gates that wait for each other: each for the next one, and the last for the first.
fn sequence(after: &[Vec<usize>], mut on_circle: impl FnMut(&[usize])) -> Vec<usize> {
    let mut sequence = Vec::with_capacity(after.len());
    let mut placed = vec![false; after.len()];
    while sequence.len() < after.len() {
        let count = sequence.len();
        for gate in 0..after.len() {
            if !placed[gate] && after[gate].iter().all(|other| placed[*other]) {
                placed[gate] = true;
                sequence.push(gate);
            }
        }
        if sequence.len() == count {
            let circle = circle(after, &placed);
            on_circle(&circle);
            for gate in circle {
                placed[gate] = true;
                sequence.push(gate);
            }
        }
    }
    sequence
}

/// A circle among the gates that are not `placed`, each of which waits for another of them.
fn circle(after: &[Vec<usize>], placed: &[bool]) -> Vec<usize> {
    let waits_for = |gate: &usize| after[*gate].iter().find(|other| !placed[**other]);
    let mut path: Vec<_> = placed
        .iter()
        .position(|placed| !placed)
        .into_iter()
        .collect();
    while let Some(next) = path.last().and_then(waits_for) {
        if let Some(start) = path.iter().position(|gate| gate == next) {
            path.drain(..start);
            break;
        }
        path.push(*next);
    }
    // From top to bottom of the file.
    let first = path.iter().enumerate().min_by_key(|(_, gate)| **gate);
    let first = first.map_or(0, |(index, _)| index);
    path.rotate_left(first);
    path
}

/// What is known of a gate in the file, even if it has problems.
pub(super) struct Entry<'t> {
    name: Option<&'t str>,
    members: Vec<String>,
    after: Vec<(Cursor<'t>, String)>,
}

/// Reads `after`, and adds the gate that stands `at` to `entries`. `members`: those of the group.
pub(super) fn read<'t>(
    at: &Cursor<'t>,
    fields: &mut Fields<'_, 't>,
    members: Vec<String>,
    entries: &mut Vec<Entry<'t>>,
) -> Vec<String> {
    let after = fields.or("after", Vec::new(), |list| {
        list.list(|gate| Some((gate.clone(), gate.text(&DNS_LABEL)?)))
    });
    let names = after.iter().map(|(_, name)| name.clone()).collect();
    let name = at.get("name").and_then(|name| match name.value() {
        Value::String(name) => Some(name.as_str()),
        _ => None,
    });
    entries.push(Entry {
        name,
        members,
        after,
    });
    names
}

/// The same for a member of a group.
pub(super) fn refuse(fields: &mut Fields<'_, '_>) {
    fields.refuse(
        "after",
        "is not allowed here: untaint asks all members of a group; write it one level up, beside anyOf",
    );
}

/// Reports gates that do not exist or could never be asked.
pub(super) fn check(gates: &[Entry<'_>]) {
    let mut indexes = HashMap::new();
    for (index, gate) in gates.iter().enumerate() {
        if let Some(name) = gate.name {
            indexes.entry(name).or_insert(index);
        }
    }
    let after = gates.iter().map(|gate| known(gate, gates, &indexes));
    let after: Vec<BTreeMap<usize, &Cursor<'_>>> = after.collect();
    let indexes = after.iter().map(|after| after.keys().copied().collect());
    let indexes: Vec<Vec<_>> = indexes.collect();
    sequence(&indexes, |circle| {
        let others = circle.iter().skip(1).chain(circle.first());
        let steps = circle.iter().zip(others).filter_map(|(gate, other)| {
            let names = (gates[*gate].name?, gates[*other].name?);
            Some((names, after[*gate].get(other)?))
        });
        let steps: Vec<_> = steps.collect();
        let Some((_, at)) = steps.first() else {
            return;
        };
        let words = steps
            .iter()
            .enumerate()
            .map(|(index, ((gate, other), step))| {
                let place = if index == 0 {
                    String::new()
                } else {
                    format!(" ({})", at.whereabouts(step))
                };
                format!("{gate} waits for {other}{place}")
            });
        let words = words.collect::<Vec<_>>().join(", ");
        at.report(format!(
            "makes gates wait for each other, so that none of them could ever open: {words}"
        ));
    });
}

/// The indexes and places of the gates in `after` that exist. Reports the others.
fn known<'e, 't>(
    gate: &'e Entry<'t>,
    gates: &[Entry<'t>],
    indexes: &HashMap<&str, usize>,
) -> BTreeMap<usize, &'e Cursor<'t>> {
    let mut known = BTreeMap::new();
    for (at, wanted) in &gate.after {
        if gate.name == Some(wanted.as_str()) {
            at.report("is this gate itself, which could then never open");
        } else if let Some(index) = indexes.get(wanted.as_str()) {
            if let Some(first) = known.insert(*index, at) {
                at.report_repeated(first);
            }
        } else {
            let instead = instead(wanted, gate, gates);
            at.report(format!("is not the name of a gate {instead}"));
        }
    }
    known
}

/// The end of the message that no gate is called `wanted`.
fn instead(wanted: &String, gate: &Entry<'_>, gates: &[Entry<'_>]) -> String {
    /// More names would not help.
    const MOST: usize = 10;
    let group = gates.iter().find(|group| group.members.contains(wanted));
    if let Some(group) = group.and_then(|group| group.name) {
        return if gate.name == Some(group) {
            "of this rule, but of a member of this group".into()
        } else {
            format!("of this rule, but of a member of a group; name the group {group}")
        };
    }
    let others = gates.iter().filter_map(|other| other.name);
    let others = others.filter(|other| gate.name != Some(other)).take(MOST);
    match others.collect::<Vec<_>>().join(", ") {
        others if others.is_empty() => "of this rule, which has no other gate".into(),
        others => format!("of this rule; its other gates are {others}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_gate_comes_behind_those_it_waits_for_and_every_circle_is_found() {
        for (after, expected, circles) in [
            (vec![], vec![], vec![]),
            (vec![vec![], vec![], vec![]], vec![0, 1, 2], vec![]),
            (vec![vec![2], vec![0], vec![]], vec![2, 0, 1], vec![]),
            (vec![vec![1, 2], vec![2], vec![]], vec![2, 1, 0], vec![]),
            (vec![vec![1], vec![0]], vec![0, 1], vec![vec![0, 1]]),
            // Those behind a circle are no part of it.
            (
                vec![vec![2], vec![2, 0], vec![3], vec![2]],
                vec![2, 3, 0, 1],
                vec![vec![2, 3]],
            ),
            (
                vec![vec![2], vec![3], vec![0], vec![1], vec![]],
                vec![4, 0, 2, 1, 3],
                vec![vec![0, 2], vec![1, 3]],
            ),
            (
                vec![vec![1], vec![2], vec![0]],
                vec![0, 1, 2],
                vec![vec![0, 1, 2]],
            ),
        ] {
            let after: Vec<Vec<usize>> = after;
            let mut found: Vec<Vec<usize>> = Vec::new();
            let sequence = sequence(&after, |circle| found.push(circle.to_vec()));
            assert_eq!((sequence, found), (expected, circles), "{after:?}");
        }
    }
}
