//! DaemonSets of several API groups.

use super::*;

/// The pod in another API group.
fn in_group(pod: Value, version: &str) -> Value {
    with(
        pod,
        "/metadata/ownerReferences/0/apiVersion",
        json!(version),
    )
}

/// OpenKruise has DaemonSets, too.
#[test]
fn daemon_sets_of_one_name_in_two_api_groups_are_two() {
    const KRUISE: &str = "apps.kruise.io/v1alpha1";
    let a = || pod("a", "a-1");
    let other = |version| newer(in_group(pod("a", "a-2"), version));
    for (pods, two) in [
        // The newer pod does not replace the other one, which is of another DaemonSet.
        (vec![unready(a()), other(KRUISE)], true),
        (vec![unready(a()), other("v1")], true),
        // This one is of another version of the same group.
        (vec![unready(a()), other("apps/v1beta2")], false),
    ] {
        for gate in [gate(true, &[]), gate(false, &["a"])] {
            let expected = if two {
                closed(&format!("1 of 2 {CLOSED}: pod a-1 is not ready"))
            } else {
                open(&format!("1 of 1 {OPEN}"))
            };
            assert_eq!(outcome(&gate, &pods), expected, "{gate:?} {pods:#?}");
        }
    }
    let now = (Instant::now(), Timestamp::now());
    for gate in [gate(true, &[]), gate(false, &["a"]), gate(true, &["a"])] {
        let mut departures = Departures::default();
        for (pods, state) in [
            (vec![a(), other(KRUISE)], State::Open),
            (vec![other(KRUISE)], State::Unknown),
        ] {
            let judgement = judgement(&gate, &pods, now, &mut departures);
            assert_eq!(judgement.outcome.state(), state, "{gate:?} {pods:#?}");
        }
    }
    let named = outcome(&gate(false, &["a"]), &[other(KRUISE)]);
    assert_eq!(named, open(&format!("1 of 1 {OPEN}")));
}
