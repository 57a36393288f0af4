//! Follows one rule through the record.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;
use untaint::gate::State;

use super::{Event, ExpectedRule, Fate, Gate, Outcome, Removal, What, when};

/// The result for the rule, and its differences from what is expected. `overdue` are the rules that were overdue at the
/// end.
pub(super) fn judge(
    rule: &ExpectedRule,
    events: &[Event],
    overdue: &[String],
) -> (Outcome, Vec<String>) {
    let mut follower = Follower {
        rule,
        outcome: Outcome::default(),
        true_gates: BTreeSet::new(),
        opened: BTreeMap::new(),
        problems: Vec::new(),
    };
    for event in events {
        follower.follow(event);
    }
    follower.end(overdue)
}

struct Follower<'a> {
    rule: &'a ExpectedRule,
    outcome: Outcome,
    /// The gates whose condition holds.
    true_gates: BTreeSet<&'static str>,
    /// The gates that the agent found open after the taint was added, and since when.
    opened: BTreeMap<String, Duration>,
    problems: Vec<String>,
}

impl Follower<'_> {
    fn follow(&mut self, Event { at, what }: &Event) {
        match what {
            What::Fact { gate, holds } if gate.rule == self.rule.name => {
                if *holds {
                    self.true_gates.insert(gate.name);
                } else {
                    self.true_gates.remove(gate.name);
                }
            }
            What::Found { rule, gate, state } if rule == self.rule.name => {
                if *state == State::Open {
                    self.opened.entry(gate.clone()).or_insert(*at);
                } else {
                    self.opened.remove(gate);
                }
            }
            What::Overdue(rule) if rule == self.rule.name => self.report(*at),
            What::Stored(taints) => {
                let is_there = taints.iter().any(|taint| taint == self.rule.taint);
                match self.outcome.tainted {
                    None if is_there => {
                        self.outcome.tainted = Some(*at);
                        // The state of a gate from before the taint was added does not count.
                        self.opened.clear();
                    }
                    Some(_) if !is_there => self.remove(*at),
                    _ => {}
                }
            }
            _ => {}
        }
    }

    fn remove(&mut self, gone: Duration) {
        let when = when(gone);
        for Gate { rule, name } in self.rule.gates {
            if !self.true_gates.contains(name) {
                self.problems.push(format!(
                    "{when}: the taint of {rule} was removed before the condition of its gate {name} was true"
                ));
            }
            if !self.opened.contains_key(*name) {
                self.problems.push(format!(
                    "{when}: the taint of {rule} was removed while the gate {name} was not open"
                ));
            }
        }
        self.outcome.tainted = None;
        self.outcome.removals.push(Removal {
            opened: self.opened.clone(),
            gone,
        });
    }

    fn report(&mut self, at: Duration) {
        let name = self.rule.name;
        let since = self.outcome.tainted.unwrap_or(at);
        let waited = at.saturating_sub(since);
        match self.rule.fate {
            Fate::Kept { deadline } if waited < deadline => self.problems.push(format!(
                "{}: the deadline of {name} was reported {} after its taint was added, instead of {}",
                when(at),
                when(waited),
                when(deadline)
            )),
            Fate::Kept { .. } => {}
            Fate::Removed { .. } => self.problems.push(format!(
                "{}: the deadline of {name} was reported too early",
                when(at)
            )),
        }
        self.outcome.reports.push(at);
    }

    fn end(mut self, overdue: &[String]) -> (Outcome, Vec<String>) {
        let ExpectedRule {
            name, taint, fate, ..
        } = self.rule;
        let (removals, reports) = (self.outcome.removals.len(), self.outcome.reports.len());
        let is_there = self.outcome.tainted.is_some();
        let is_overdue = overdue.iter().any(|rule| rule == name);
        let mut wrong = |is_wrong: bool, problem: String| {
            if is_wrong {
                self.problems.push(problem);
            }
        };
        match fate {
            Fate::Removed { times } => {
                wrong(is_there, format!("{taint} is still there"));
                wrong(
                    removals != *times,
                    format!("{removals} removals for {name} instead of {times}"),
                );
                wrong(is_overdue, format!("/statusz calls {name} overdue"));
            }
            Fate::Kept { .. } => {
                wrong(
                    !is_there,
                    format!("{taint} is not there, but should have stayed"),
                );
                wrong(
                    reports != 1,
                    format!("the deadline of {name} was reported {reports} times instead of once"),
                );
                wrong(
                    !is_overdue,
                    format!("/statusz does not call {name} overdue"),
                );
            }
        }
        (self.outcome, self.problems)
    }
}
