mod kept;
mod requests;

use testkit::api::Verb;

use super::*;

const NODES: &str = "/nodes";
const NODE: &str = "/nodes/n";
const OTHERS: &str = "/others";

const GOES: &str = "goes:NoExecute";
const STAYS: &str = "stays:NoSchedule";
const FOREIGN: [&str; 2] = ["foreign:NoSchedule", "foreign=x:NoExecute"];

const A: Gate = gate("goes", "a");
const B: Gate = gate("goes", "b");
const NEVER: Gate = gate("stays", "never");

const EXPECTED: Expected = Expected {
    rules: &[
        ExpectedRule {
            name: "goes",
            taint: GOES,
            gates: &[A, B],
            fate: Fate::Removed { times: 2 },
        },
        ExpectedRule {
            name: "stays",
            taint: STAYS,
            gates: &[NEVER],
            fate: Fate::Kept {
                deadline: Duration::from_secs(5),
            },
        },
    ],
    foreign: &FOREIGN,
    watched: &[NODES, OTHERS],
    patched: NODE,
};

const fn gate(rule: &'static str, name: &'static str) -> Gate {
    Gate { rule, name }
}

/// The Node's taints, with the foreign taints around the last one.
fn stored(own: &[&str]) -> What {
    let [first, second] = FOREIGN;
    let mut taints = [own, &[second]].concat();
    taints.insert(own.len().saturating_sub(1), first);
    What::Stored(taints.into_iter().map(str::to_owned).collect())
}

fn found(gate: Gate, state: State) -> What {
    What::Found {
        rule: gate.rule.into(),
        gate: gate.name.into(),
        state,
    }
}

fn fact(gate: Gate, holds: bool) -> What {
    What::Fact { gate, holds }
}

fn overdue(rule: &str) -> What {
    What::Overdue(rule.into())
}

fn request(verb: Verb, path: &str) -> Request {
    Request {
        verb,
        path: path.into(),
        code: Some(200),
        connection: 0,
    }
}

/// A record with one event in each second, and everything else as expected.
fn record(events: Vec<What>) -> Record {
    let events = events.into_iter().zip(0..).map(|(what, second)| Event {
        at: Duration::from_secs(second),
        what,
    });
    Record {
        events: events.collect(),
        requests: vec![
            request(Verb::Watch, NODES),
            request(Verb::Watch, OTHERS),
            request(Verb::Patch, NODE),
            request(Verb::Patch, NODE),
        ],
        overdue: vec!["stays".into()],
    }
}

/// The record of a run without faults.
fn events() -> Vec<What> {
    vec![
        stored(&[GOES, STAYS]),
        found(A, State::Closed),
        found(B, State::Closed),
        found(NEVER, State::Closed),
        fact(A, true),
        found(A, State::Open),
        fact(B, true),
        found(B, State::Open),
        stored(&[STAYS]),
        found(A, State::Unknown),
        found(B, State::Unknown),
        overdue("stays"),
        fact(B, false),
        stored(&[GOES, STAYS]),
        found(A, State::Open),
        fact(B, true),
        found(B, State::Open),
        stored(&[STAYS]),
    ]
}

#[track_caller]
fn assert_problems(record: &Record, expected: &[&str]) {
    assert_eq!(judge(record, &EXPECTED).problems, expected);
}

#[test]
fn two_removals_after_all_gates_and_one_report_are_as_expected() {
    let verdict = judge(&record(events()), &EXPECTED);
    assert!(verdict.problems.is_empty(), "{:?}", verdict.problems);
    let [goes, stays] = verdict.outcomes.as_slice() else {
        panic!("one outcome a rule");
    };
    let delays: Vec<_> = goes.removals.iter().map(Removal::last_gate).collect();
    assert_eq!(delays, [Some(("b", Duration::from_secs(1))); 2]);
    assert_eq!((&goes.tainted, goes.reports.len()), (&None, 0));
    assert_eq!(stays.removals.len(), 0);
    assert_eq!(stays.tainted, Some(Duration::ZERO));
    assert_eq!(stays.reports, [Duration::from_secs(11)]);
}

#[test]
fn a_removal_before_the_agent_found_a_gate_open_is_a_problem() {
    let mut events = events();
    events.swap(7, 8);
    assert_problems(
        &record(events),
        &["7000 ms: the taint of goes was removed while the gate b was not open"],
    );
}

#[test]
fn a_removal_before_what_a_gate_waits_for_is_a_problem_whatever_the_agent_found() {
    let mut events = events();
    events.remove(6);
    assert_problems(
        &record(events),
        &["7000 ms: the taint of goes was removed before the condition of its gate b was true"],
    );
}

#[test]
fn a_removal_after_a_gate_has_closed_again_is_a_problem() {
    let mut events = events();
    events.insert(8, found(A, State::Closed));
    assert_problems(
        &record(events),
        &["9000 ms: the taint of goes was removed while the gate a was not open"],
    );
}

#[test]
fn a_removal_after_what_a_gate_waits_for_has_ended_is_a_problem() {
    let mut events = events();
    events.insert(8, fact(A, false));
    events.insert(10, fact(A, true));
    assert_problems(
        &record(events),
        &["9000 ms: the taint of goes was removed before the condition of its gate a was true"],
    );
}

#[test]
fn a_second_removal_on_the_strength_of_the_first_ones_gates_is_a_problem() {
    let mut events = events();
    events.remove(16);
    events.remove(14);
    events.drain(9..11);
    assert_problems(
        &record(events),
        &[
            "13000 ms: the taint of goes was removed while the gate a was not open",
            "13000 ms: the taint of goes was removed while the gate b was not open",
        ],
    );
}

#[test]
fn open_gates_of_another_rule_are_no_excuse() {
    let mut events = events();
    events[7] = found(gate("stays", "b"), State::Open);
    assert_problems(
        &record(events),
        &["8000 ms: the taint of goes was removed while the gate b was not open"],
    );
}

#[test]
fn a_foreign_taint_that_was_lost_for_a_moment_is_a_problem() {
    let mut events = events();
    events[8] = What::Stored(vec![STAYS.into(), FOREIGN[1].into()]);
    assert_problems(
        &record(events),
        &[
            "8000 ms: the other taints are [\"foreign=x:NoExecute\"] instead of [\"foreign:NoSchedule\", \"foreign=x:NoExecute\"]",
        ],
    );
}

#[test]
fn a_foreign_taint_that_was_changed_or_added_is_a_problem() {
    for other in ["foreign=x:NoSchedule", "goes:NoSchedule"] {
        let mut events = events();
        let What::Stored(taints) = &mut events[17] else {
            panic!("the last event is the Node's");
        };
        taints[2] = other.into();
        let problem = format!(
            "17000 ms: the other taints are [\"foreign:NoSchedule\", \"{other}\"] \
             instead of [\"foreign:NoSchedule\", \"foreign=x:NoExecute\"]"
        );
        assert_problems(&record(events), &[&problem]);
    }
}

#[test]
fn a_taint_that_stays_but_should_not_is_a_problem() {
    let mut events = events();
    events.pop();
    let mut record = record(events);
    record.requests.pop();
    assert_problems(
        &record,
        &[
            "goes:NoExecute is still there",
            "1 removals for goes instead of 2",
        ],
    );
}

#[test]
fn nothing_at_all_is_a_problem() {
    let record = Record {
        events: vec![],
        requests: vec![],
        overdue: vec![],
    };
    assert_problems(
        &record,
        &[
            "0 removals for goes instead of 2",
            "stays:NoSchedule is not there, but should have stayed",
            "the deadline of stays was reported 0 times instead of once",
            "/statusz does not call stays overdue",
            "0 times WATCH /nodes instead of 1",
            "0 times WATCH /others instead of 1",
        ],
    );
}
