//! The pod in which untaint runs.

use super::*;

#[test]
fn a_pod_of_this_program_that_is_ready_counts() {
    let is_ready = || open(&format!("1 of 1 {OPEN}"));
    let own = pod("b", "own");
    for gate in [gate(true, &[]), gate(false, &["b"])] {
        assert_eq!(outcome(&gate, std::slice::from_ref(&own)), is_ready());
    }
}

#[test]
fn the_pod_that_waits_for_this_program_is_not_waited_for_and_is_told() {
    let pods = [pod("a", "a-1"), unready(pod("b", "own"))];
    let own = "pod own waits until this untaint ends";
    let expected = open(&format!("1 of 1 {OPEN}; not waited for: {own}"));
    assert_eq!(outcome(&gate(true, &[]), &pods), expected);
    let expected = closed(&format!("1 of 1 {CLOSED}: {own}"));
    assert_eq!(outcome(&gate(false, &["b"]), &pods), expected);
}
