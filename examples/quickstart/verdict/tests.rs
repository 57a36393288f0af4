use super::*;

const OWN: &str = "own:NoExecute";
const FOREIGN: &str = "foreign:NoSchedule";

const EXPECTED: Expected<'static> = Expected {
    taint: OWN,
    foreign: FOREIGN,
    gates: &["a", "b"],
    removals: 2,
};

fn stored(taints: &[&str]) -> What {
    What::Stored(taints.iter().map(ToString::to_string).collect())
}

fn gate(name: &str, state: &'static str) -> What {
    What::Gate(name.into(), state)
}

fn request(verb: Verb, code: u16) -> Request {
    Request {
        verb,
        code: Some(code),
        connection: 0,
    }
}

/// One event a second, and the requests of two removals.
fn record(events: Vec<What>) -> Record {
    let events = events.into_iter().zip(0..).map(|(what, second)| Event {
        at: Duration::from_secs(second),
        what,
    });
    Record {
        events: events.collect(),
        requests: vec![
            request(Verb::Watch, 200),
            request(Verb::Patch, 200),
            request(Verb::Patch, 200),
        ],
    }
}

/// As it should be.
fn events() -> Vec<What> {
    vec![
        stored(&[OWN, FOREIGN]),
        gate("a", "closed"),
        gate("b", "closed"),
        gate("a", "open"),
        gate("b", "open"),
        stored(&[FOREIGN]),
        gate("a", "unknown"),
        gate("b", "unknown"),
        stored(&[FOREIGN, OWN]),
        gate("b", "open"),
        gate("a", "open"),
        stored(&[FOREIGN]),
    ]
}

#[track_caller]
fn assert_problems(record: &Record, expected: &[&str]) {
    assert_eq!(judge(record, &EXPECTED).problems, expected);
}

#[test]
fn two_removals_after_both_gates_are_as_expected() {
    let verdict = judge(&record(events()), &EXPECTED);
    assert!(verdict.problems.is_empty(), "{:?}", verdict.problems);
    let delays: Vec<_> = verdict.removals.iter().map(Removal::delay).collect();
    assert_eq!(delays, [Some(Duration::from_secs(1)); 2]);
}

#[test]
fn a_removal_before_a_gate_was_open_is_a_problem() {
    let mut events = events();
    events.swap(4, 5);
    assert_problems(
        &record(events),
        &["+4.000 s: the taint went while the gate b was not open"],
    );
}

#[test]
fn a_removal_after_a_gate_has_closed_again_is_a_problem() {
    let mut events = events();
    events.insert(5, gate("a", "closed"));
    assert_problems(
        &record(events),
        &["+6.000 s: the taint went while the gate a was not open"],
    );
}

#[test]
fn a_second_removal_on_the_strength_of_the_first_ones_gates_is_a_problem() {
    let mut events = events();
    events.drain(9..11);
    events.drain(6..8);
    assert_problems(
        &record(events),
        &[
            "+7.000 s: the taint went while the gate a was not open",
            "+7.000 s: the taint went while the gate b was not open",
        ],
    );
}

#[test]
fn a_foreign_taint_that_was_lost_for_a_moment_is_a_problem() {
    let mut events = events();
    events[5] = stored(&[]);
    assert_problems(
        &record(events),
        &["+5.000 s: the other taints are [] instead of only foreign:NoSchedule"],
    );
}

#[test]
fn a_foreign_taint_with_another_effect_is_a_problem() {
    let mut events = events();
    events[11] = stored(&["foreign:NoExecute"]);
    assert_problems(
        &record(events),
        &[
            "+11.000 s: the other taints are [\"foreign:NoExecute\"] instead of only foreign:NoSchedule",
        ],
    );
}

#[test]
fn a_taint_that_stays_is_a_problem() {
    let mut events = events();
    events.pop();
    let mut record = record(events);
    record.requests.pop();
    assert_problems(
        &record,
        &["own:NoExecute is still there", "1 removals instead of 2"],
    );
}

#[test]
fn nothing_at_all_is_a_problem() {
    let record = Record {
        events: vec![],
        requests: vec![],
    };
    assert_problems(
        &record,
        &["0 removals instead of 2", "0 WATCH requests instead of 1"],
    );
}

#[test]
fn a_patch_or_a_watch_too_many_is_a_problem() {
    for (verb, problem) in [
        (Verb::Patch, "3 PATCH requests instead of 2"),
        (Verb::Watch, "2 WATCH requests instead of 1"),
    ] {
        let mut record = record(events());
        record.requests.push(request(verb, 200));
        assert_problems(&record, &[problem]);
    }
}

#[test]
fn a_removal_without_a_patch_is_a_problem() {
    let mut record = record(events());
    record.requests.pop();
    assert_problems(&record, &["1 PATCH requests instead of 2"]);
}

#[test]
fn a_request_that_is_neither_watch_nor_patch_is_a_problem() {
    let mut record = record(events());
    record.requests.push(request(Verb::Get, 200));
    assert_problems(&record, &["a GET request that was not needed"]);
}

#[test]
fn a_request_that_is_refused_or_not_answered_is_a_problem() {
    let mut record = record(events());
    record.requests[0].code = None;
    record.requests[1].code = Some(422);
    assert_problems(
        &record,
        &["WATCH was not answered", "PATCH was answered 422"],
    );
}
