use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde_json::json;

use super::*;
use crate::api::ApiError;
use crate::config::{Retaint, Rule};
use crate::node::patch::{addition, removal};
use crate::taint::Effect;

fn node(uid: &str, taints: &[&str]) -> NodeView {
    let taints: Vec<_> = taints
        .iter()
        .map(|key| json!({"key": key, "effect": if key.contains("karpenter") { "NoExecute" } else { "NoSchedule" }}))
        .collect();
    let metadata =
        json!({"name": "node", "uid": uid, "resourceVersion": "1", "labels": {"pool": "a"}});
    serde_json::from_value(json!({"metadata": metadata, "spec": {"taints": taints}})).unwrap()
}

fn rule(name: &str, key: &str) -> Rule {
    let mut rule = crate::rule::tests::rule();
    rule.name = name.into();
    rule.taint.key = key.into();
    rule.taint.effect = Some(Effect::NoSchedule);
    rule.retaint = Some(Retaint::default());
    rule
}

fn state(rule: Rule) -> RuleState {
    RuleState::new(rule, None)
}

fn elsewhere(mut rule: Rule) -> Rule {
    rule.node_selector = BTreeMap::from([("pool".to_owned(), "b".to_owned())]);
    rule
}

fn dry(mut rule: Rule) -> Rule {
    rule.dry_run = true;
    rule
}

/// The put-back of the taint `t` by the rule `one` is sent.
fn sent() -> (PutBacks, Change) {
    let rule = rule("one", "t");
    let change = addition(&node("u", &[]), &[rule.taint.to_taint()]).unwrap();
    let mut put_backs = PutBacks::default();
    put_backs.sent(&change, [&state(rule)].into_iter());
    (put_backs, change)
}

/// It was accepted.
fn done() -> PutBacks {
    let (mut put_backs, change) = sent();
    assert_eq!(put_backs.answered(&change, &Ok(node("u", &["t"]))), []);
    put_backs
}

/// What is left on `node` by these rules.
fn left(put_backs: &mut PutBacks, node: &NodeView, rules: Vec<Rule>) -> Vec<Left> {
    let mut states: Vec<_> = rules.into_iter().map(state).collect();
    put_backs.update(node, &mut states.iter_mut().collect::<Vec<_>>(), None);
    put_backs.left().iter().map(|left| left.left).collect()
}

/// The removal of `t`.
fn take_off() -> Change {
    let matcher = rule("one", "t").taint;
    removal(&node("u", &["t"]), |_| Some((&matcher).into())).unwrap()
}

#[test]
fn what_was_put_back_is_judged_by_the_rules_for_the_node() {
    let mine = || rule("one", "t");
    let without_retaint = || Rule {
        retaint: None,
        ..mine()
    };
    for (what, rules, expected) in [
        ("the same rule", vec![mine()], None),
        ("without retaint", vec![without_retaint()], None),
        ("another name", vec![rule("two", "t")], None),
        ("another key", vec![rule("one", "other")], None),
        (
            "a dry run beside another rule",
            vec![dry(mine()), rule("two", "t")],
            None,
        ),
        ("a dry run", vec![dry(mine())], Some(Left::DryRun)),
        (
            "a dry run of another name",
            vec![dry(rule("two", "t"))],
            Some(Left::DryRun),
        ),
        (
            "a dry run with another key",
            vec![dry(rule("one", "other"))],
            Some(Left::DryRun),
        ),
        (
            "a dry run elsewhere",
            vec![dry(elsewhere(mine()))],
            Some(Left::DryRun),
        ),
        ("elsewhere", vec![elsewhere(mine())], Some(Left::Orphaned)),
        (
            "elsewhere with another key",
            vec![elsewhere(rule("one", "other"))],
            Some(Left::Orphaned),
        ),
        (
            "other rules",
            vec![rule("two", "other")],
            Some(Left::Orphaned),
        ),
        ("no rules", vec![], Some(Left::Orphaned)),
    ] {
        let on_node = node("u", &["t"]);
        let mut put_backs = done();
        let found = left(&mut put_backs, &on_node, rules);
        assert_eq!(found, Vec::from_iter(expected), "{what}");
        let taken_off = put_backs.to_take_off(&on_node).count();
        assert_eq!(taken_off == 1, expected == Some(Left::Orphaned), "{what}");
    }
}

#[test]
fn a_rule_adopts_what_an_earlier_rule_of_its_name_has_put_back_until_it_is_gone() {
    let mut put_backs = done();
    let mut successor = state(rule("one", "other"));
    let taint = &node("u", &["t"]).taints[0];
    for on_node in [node("u", &["t"]), node("u", &["t", "x"])] {
        put_backs.update(&on_node, &mut [&mut successor], None);
        successor.step(std::time::Instant::now(), Some(&on_node));
        assert!(successor.own_taints().include(taint));
        assert_eq!(successor.own_taints().matchers().count(), 3);
    }
    let clean = node("u", &[]);
    put_backs.update(&clean, &mut [&mut successor], None);
    successor.step(std::time::Instant::now(), Some(&clean));
    assert!(
        !successor.own_taints().include(taint),
        "it is of others if it comes back"
    );
}

#[test]
fn what_was_gone_or_is_on_another_node_or_was_never_put_back_is_of_others() {
    let on_node = node("u", &["t"]);
    let mut put_backs = done();
    assert_eq!(left(&mut put_backs, &node("u", &[]), vec![]), []);
    assert_eq!(left(&mut put_backs, &on_node, vec![]), [], "it came back");

    let mut put_backs = done();
    assert_eq!(left(&mut put_backs, &node("another", &["t"]), vec![]), []);

    let (mut put_backs, change) = sent();
    let conflict = ApiError::Refused {
        code: 409,
        message: "no".into(),
        detailed: false,
        retry_after: None,
    };
    put_backs.answered(&change, &Err(conflict));
    assert_eq!(
        left(&mut put_backs, &on_node, vec![]),
        [],
        "others were first"
    );

    let (mut put_backs, change) = sent();
    put_backs.answered(&change, &Ok(node("u", &[])));
    assert_eq!(
        left(&mut put_backs, &on_node, vec![]),
        [],
        "it was undone at once"
    );

    let (mut put_backs, change) = sent();
    put_backs.answered(&change, &Err(ApiError::Transport("reset".into())));
    put_backs.read(&node("u", &[]));
    assert_eq!(
        left(&mut put_backs, &on_node, vec![]),
        [],
        "it never took effect"
    );
}

#[test]
fn a_put_back_without_an_answer_is_known_once_its_taint_is_seen() {
    let on_node = node("u", &["t"]);
    let (mut put_backs, change) = sent();
    assert_eq!(
        left(&mut put_backs, &on_node, vec![]),
        [],
        "it may be of others"
    );
    put_backs.answered(&change, &Err(ApiError::Transport("reset".into())));
    assert_eq!(left(&mut put_backs, &node("u", &[]), vec![]), []);
    assert_eq!(left(&mut put_backs, &on_node, vec![]), [Left::Orphaned]);
}

/// Where the agent may not read the Node, it tries again without a read.
#[test]
fn a_put_back_that_is_tried_again_after_a_lost_answer_is_known_once() {
    let on_node = node("u", &["t"]);
    // The server refuses the second one, because the first one has taken effect.
    let refused = ApiError::Refused {
        code: 422,
        message: "the taint is there".into(),
        detailed: false,
        retry_after: None,
    };
    for second in [Ok(on_node.clone()), Err(refused)] {
        let (mut put_backs, change) = sent();
        put_backs.answered(&change, &Err(ApiError::Transport("reset".into())));
        put_backs.sent(&change, [&state(rule("one", "t"))].into_iter());
        put_backs.answered(&change, &second);
        assert_eq!(left(&mut put_backs, &on_node, vec![]), [Left::Orphaned]);
        let taken_off = put_backs.answered(&take_off(), &Ok(node("u", &[])));
        assert_eq!(taken_off.len(), 1);
    }
}

#[test]
fn a_taint_is_taken_off_once_and_not_before_karpenter_has_registered_the_node() {
    let mut put_backs = done();
    let unregistered = node("u", &["t", "karpenter.sh/unregistered"]);
    assert_eq!(
        left(&mut put_backs, &unregistered, vec![]),
        [Left::Orphaned]
    );
    assert_eq!(put_backs.to_take_off(&unregistered).count(), 0);
    for (after, is_undone) in [(node("u", &[]), false), (node("u", &["t"]), true)] {
        let mut put_backs = done();
        left(&mut put_backs, &node("u", &["t"]), vec![]);
        let taken_off = put_backs.answered(&take_off(), &Ok(after));
        let expected = TakenOff {
            rule: "one".into(),
            taint: rule("one", "t").taint.to_taint(),
            is_undone,
        };
        assert_eq!(taken_off, [expected]);
        let again = left(&mut put_backs, &node("u", &["t"]), vec![]);
        assert_eq!(
            again,
            [],
            "whoever puts it there again, it is not untaint's"
        );
    }
}

#[test]
fn a_taint_that_is_seen_to_be_gone_before_the_answer_to_its_removal_is_reported_with_the_answer() {
    let (on_node, clean) = (node("u", &["t"]), node("u", &[]));
    for is_answered in [true, false] {
        let mut put_backs = done();
        left(&mut put_backs, &on_node, vec![]);
        let under_way = take_off();
        let update = put_backs.update(&clean, &mut [], Some(&under_way));
        assert_eq!(update.taken_off, []);
        let lost = || Err(ApiError::Transport("reset".into()));
        let answer = if is_answered {
            Ok(clean.clone())
        } else {
            lost()
        };
        let with_answer = put_backs.answered(&under_way, &answer);
        let later = put_backs.update(&clean, &mut [], None).taken_off;
        assert_eq!(
            (with_answer.len(), later.len()),
            if is_answered { (1, 0) } else { (0, 1) }
        );
    }
}

#[test]
fn a_taint_whose_time_was_added_is_still_the_one_that_was_put_back() {
    let time = "2026-03-01T12:00:00Z".parse().unwrap();
    let mut on_node = node("u", &["t"]);
    on_node.taints[0].time_added = Some(Time(time));
    let matcher = rule("one", "t").taint;
    let change = removal(&on_node, |_| Some((&matcher).into())).unwrap();
    let orphaned = || {
        let mut put_backs = done();
        let others = vec![elsewhere(rule("two", "t"))];
        assert_eq!(
            left(&mut put_backs, &on_node, others),
            [Left::Orphaned],
            "it is named once"
        );
        put_backs
    };
    let taken_off = orphaned().answered(&change, &Ok(node("u", &[])));
    assert_eq!(taken_off.len(), 1);
    let mut put_backs = orphaned();
    put_backs.answered(&change, &Err(ApiError::Transport("reset".into())));
    let update = put_backs.update(&node("u", &[]), &mut [], None);
    assert_eq!(update.taken_off.len(), 1);
    let denied = Denied {
        action: Action::Remove,
        taint: change.taints[0].clone(),
        message: "no".into(),
        first: true,
        decided: true,
    };
    let mut put_backs = orphaned();
    assert_eq!(put_backs.denied(&denied), Some("one".into()));
}

#[test]
fn a_removal_by_a_rule_or_by_others_is_not_reported_as_taken_off() {
    let on_node = node("u", &["t"]);
    let mut put_backs = done();
    left(&mut put_backs, &on_node, vec![rule("one", "t")]);
    assert_eq!(put_backs.answered(&take_off(), &Ok(node("u", &[]))), []);

    let mut put_backs = done();
    left(&mut put_backs, &on_node, vec![]);
    // The removal did not take effect. Later, somebody else removes the taint.
    put_backs.unanswered(&take_off());
    put_backs.read(&on_node);
    let update = put_backs.update(&node("u", &[]), &mut [], None);
    assert_eq!(update.taken_off, []);
}

#[test]
fn a_taint_that_only_rules_for_other_nodes_name_is_left_and_told_once() {
    let on_node = node("u", &["x", "t"]);
    let mut put_backs = PutBacks::default();
    let mut other = state(elsewhere(rule("one", "t")));
    let update = put_backs.update(&on_node, &mut [&mut other], None);
    let told: Vec<_> = update.newly_left.iter().map(|left| left.left).collect();
    assert_eq!(told, [Left::NotSelected]);
    assert!(
        put_backs
            .update(&on_node, &mut [&mut other], None)
            .newly_left
            .is_empty()
    );
    assert_eq!(put_backs.left().len(), 1);
    assert_eq!(put_backs.to_take_off(&on_node).count(), 0);
    let both = vec![elsewhere(rule("one", "t")), rule("two", "t")];
    assert_eq!(left(&mut put_backs, &on_node, both), []);
}
