//! What a rule makes of a time without the API server.

use super::*;

fn away() -> NodeSnapshot {
    NodeSnapshot {
        watching: false,
        ..node("1", "True")
    }
}

/// Many nodes lose the server together. Only those that can remove a taint as soon as it is back hurry.
#[tokio::test]
async fn only_a_rule_with_a_taint_and_open_local_gates_waits_for_the_api_server() {
    let now = Instant::now();
    let mut rule = on_ready();
    // Before the first watch, nobody knows whether the Node has the taint.
    let unseen = NodeSnapshot::default();
    for (snapshot, expected) in [
        (&unseen, true),
        (&away(), true),
        (&node("1", "False"), false),
        (&node("2", "True"), true),
    ] {
        rule.step(now, snapshot);
        assert_eq!(rule.waits_for_api(), expected, "{snapshot:?}");
    }
    let mut clean = away();
    clean.node.iter_mut().for_each(|node| node.taints.clear());
    rule.step(now, &clean);
    assert!(!rule.waits_for_api(), "there is no taint to remove");

    let (mut rule, mut reported) = with_gate(on_file("file"));
    rule.step(now, &away());
    assert!(!rule.waits_for_api(), "the file has not been looked at yet");
    make_ready(&mut rule, &mut reported, &away()).await;
    assert!(rule.waits_for_api());
}

/// For gates that the agent evaluates itself, the time of `stableFor` goes on without the server. Nobody can write to the
/// API then, so nothing there, however old and however unchanged, shows that the node was well in between.
#[tokio::test]
async fn in_an_outage_stable_for_goes_on_for_local_gates_and_starts_again_for_gates_that_read_the_api()
 {
    let stable_for = Duration::from_secs(10);
    let stable = |rule: &RuleRunner| Rule {
        stable_for,
        ..rule.state.rule().clone()
    };
    let mut rule = on_ready();
    let begun = Instant::now();
    rule.reconfigure(begun, stable(&rule));
    rule.step(begun, &node("1", "True"));
    let until = |since| Decision::Stabilizing {
        until: since + stable_for,
    };
    assert_eq!(rule.state.decision(), until(begun));
    rule.step(begun + stable_for / 2, &away());
    assert_eq!(rule.state.decision(), Decision::Waiting);
    let back = begun + 3 * stable_for;
    rule.step(back, &node("1", "True"));
    assert_eq!(rule.state.decision(), until(back));
    rule.step(back + stable_for, &node("1", "True"));
    assert_eq!(rule.state.decision(), Decision::Ready);

    let (mut rule, mut reported) = with_gate(on_file("file"));
    make_ready(&mut rule, &mut reported, &away()).await;
    let begun = Instant::now();
    rule.reconfigure(begun, stable(&rule));
    rule.step(begun, &away());
    assert!(matches!(
        rule.state.decision(),
        Decision::Stabilizing { .. }
    ));
    rule.step(begun + stable_for, &away());
    assert_eq!(rule.state.decision(), Decision::Ready);
}
