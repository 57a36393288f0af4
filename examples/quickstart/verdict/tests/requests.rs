use super::*;

#[test]
fn a_request_too_many_is_a_problem() {
    for (verb, path, problem) in [
        (Verb::Patch, NODE, "3 times PATCH /nodes/n instead of 2"),
        (Verb::Watch, NODES, "2 times WATCH /nodes instead of 1"),
        (Verb::Watch, OTHERS, "2 times WATCH /others instead of 1"),
        (Verb::Watch, "/more", "WATCH /more was not needed"),
        (Verb::Patch, OTHERS, "PATCH /others was not needed"),
        (Verb::Get, NODE, "GET /nodes/n was not needed"),
    ] {
        let mut record = record(events());
        record.requests.push(request(verb, path));
        assert_problems(&record, &[problem]);
    }
}

#[test]
fn a_removal_without_a_patch_is_a_problem() {
    let mut record = record(events());
    record.requests.pop();
    assert_problems(&record, &["1 times PATCH /nodes/n instead of 2"]);
}

#[test]
fn a_request_that_is_refused_or_not_answered_is_a_problem() {
    let mut record = record(events());
    record.requests[0].code = None;
    record.requests[2].code = Some(422);
    assert_problems(
        &record,
        &[
            "WATCH /nodes got no answer",
            "PATCH /nodes/n got the answer 422",
        ],
    );
}

#[test]
fn a_second_connection_is_a_problem() {
    let mut record = record(events());
    record.requests[1].connection = 1;
    assert_problems(&record, &["2 connections instead of 1"]);
}
