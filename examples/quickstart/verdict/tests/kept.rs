use super::*;

#[test]
fn a_taint_that_goes_but_should_not_is_a_problem() {
    let mut events = events();
    events[17] = stored(&[]);
    assert_problems(
        &record(events),
        &[
            "17000 ms: the taint of stays was removed before the condition of its gate never was true",
            "17000 ms: the taint of stays was removed while the gate never was not open",
            "stays:NoSchedule is not there, but should have stayed",
            "2 times PATCH /nodes/n instead of 3",
        ],
    );
}

#[test]
fn a_deadline_that_is_not_told_of_or_more_than_once_is_a_problem() {
    let mut none = events();
    none.remove(11);
    assert_problems(
        &record(none),
        &["the deadline of stays was reported 0 times instead of once"],
    );
    let mut twice = events();
    twice.push(overdue("stays"));
    assert_problems(
        &record(twice),
        &["the deadline of stays was reported 2 times instead of once"],
    );
}

#[test]
fn a_deadline_that_is_told_of_too_early_is_a_problem() {
    let mut events = events();
    events.remove(11);
    events.insert(4, overdue("stays"));
    assert_problems(
        &record(events),
        &[
            "4000 ms: the deadline of stays was reported 4000 ms after its taint was added, instead of 5000 ms",
        ],
    );
}

#[test]
fn a_deadline_that_is_far_off_but_told_of_is_a_problem() {
    let mut events = events();
    events.push(overdue("goes"));
    assert_problems(
        &record(events),
        &["18000 ms: the deadline of goes was reported too early"],
    );
}

#[test]
fn a_status_page_that_does_not_know_what_is_overdue_is_a_problem() {
    let mut record = record(events());
    record.overdue = vec!["goes".into()];
    assert_problems(
        &record,
        &[
            "/statusz calls goes overdue",
            "/statusz does not call stays overdue",
        ],
    );
}
