//! What the server refuses to do with a taint.

use super::*;
use crate::node::writes::denial::{DENIED_BASE, DENIED_CAP};

#[test]
fn a_denial_is_reported_once_and_tried_again_less_and_less_often() {
    let mut scene = Scene::new();
    let tainted = node(1, &["one"]);
    let mut firsts = Vec::new();
    let mut waits = Vec::new();
    for _ in 0..12 {
        let (_, outcome) = scene.deny(&tainted);
        let Some(Denied { message, first, .. }) = outcome else {
            panic!("{outcome:?}")
        };
        assert_eq!(message, "403: no");
        firsts.push(first);
        let Next::Wait(Some(until)) = scene.next(&tainted) else {
            panic!("it should wait")
        };
        waits.push(until - scene.now);
    }
    assert_eq!(firsts.iter().filter(|first| **first).count(), 1);
    assert!(firsts[0]);
    assert!(waits[0] >= DENIED_BASE && waits[0] <= DENIED_BASE * 2);
    assert!(waits.iter().all(|wait| *wait <= DENIED_CAP * 2));
    assert!(
        *waits.last().unwrap() >= DENIED_CAP,
        "no more than one try a minute"
    );
    let removal = scene.due_removal(&tainted);
    assert!(
        scene.sent(&removal, &Ok(node(2, &[]))) == MustRead::No,
        "recovers by itself"
    );
}

#[test]
fn a_denied_taint_that_is_not_wanted_any_more_is_no_reason_to_wake_up() {
    let mut scene = Scene::new();
    let tainted = node(1, &KEYS);
    scene.deny(&tainted);
    scene.deny(&tainted);
    scene.deny(&tainted);
    scene.now += DENIED_CAP * 2;
    assert_eq!(
        scene.writes.next(scene.now, &tainted, &Wanted::default()),
        Next::Wait(None)
    );
    let one = TaintMatcher {
        key: "one".into(),
        value: None,
        effect: None,
    };
    let Next::Send(Request::Patch(removal)) =
        scene
            .writes
            .next(scene.now, &tainted, &wanted(std::slice::from_ref(&one)))
    else {
        panic!("it is due")
    };
    let must_read = scene.sent(&removal, &refused(403, true));
    assert_eq!(must_read, MustRead::BeforeNextPatch);
    let wanted_one = wanted(std::slice::from_ref(&one));
    let denied = scene
        .writes
        .got(scene.now, &wanted_one, &Ok(tainted.clone()));
    assert_eq!(denied.len(), 1);
    let Next::Wait(Some(until)) =
        scene
            .writes
            .next(scene.now, &tainted, &wanted(std::slice::from_ref(&one)))
    else {
        panic!("it should wait")
    };
    assert!(until > scene.now, "the other one's time is past");
}

#[test]
fn a_refusal_for_a_node_that_may_not_be_read_is_reported_at_once_and_tried_again_soon() {
    let mut scene = Scene::new();
    let tainted = node(1, &["one"]);
    let removal = scene.due_removal(&tainted);
    scene.sent(&removal, &refused(403, true));
    assert_eq!(scene.next(&tainted), get());
    assert!(matches!(
        scene.read(&refused(403, true)),
        Some(Denied { first: true, .. })
    ));
    let Next::Wait(Some(until)) = scene.next(&tainted) else {
        panic!("it should wait")
    };
    assert!(until - scene.now <= DENIED_BASE * 2);
    scene.due_removal(&tainted);
}

#[test]
fn a_refusal_of_a_patch_for_which_there_is_nothing_left_to_do_is_no_denial() {
    let gone = node(2, &["foreign"]);
    let mut recreated = node(2, &["one"]);
    recreated.metadata.uid = "another".into();
    for read in [gone, recreated] {
        let mut scene = Scene::new();
        let removal = scene.due_removal(&node(1, &["one"]));
        scene.sent(&removal, &refused(422, true));
        assert_eq!(scene.read(&Ok(read)), None);
    }
}

#[test]
fn a_taint_that_moves_after_each_refusal_is_denied_all_the_same() {
    let others: [&[&str]; 3] = [&["foreign", "one"], &["one"], &["a", "b", "one", "c"]];
    let mut scene = Scene::new();
    let mut seen = node(1, &["one"]);
    let mut waits = Vec::new();
    for (version, keys) in (2..).zip(others) {
        let removal = scene.due_removal(&seen);
        scene.sent(&removal, &refused(403, true));
        seen = node(version, keys);
        let denied = scene.read(&Ok(seen.clone())).unwrap();
        assert_eq!(denied.first, version == 2);
        let Next::Wait(Some(until)) = scene.next(&seen) else {
            panic!("it should wait")
        };
        waits.push(until - scene.now);
    }
    assert!(waits[2] >= 4 * DENIED_BASE, "{waits:?}");
}

#[test]
fn taints_that_were_denied_together_are_tried_alone_also_if_others_have_come_or_gone() {
    for keys in [&["one", "foreign"][..], &["foreign", "two", "one"]] {
        let mut scene = Scene::new();
        let removal = scene.due_removal(&node(1, &KEYS));
        scene.sent(&removal, &refused(403, true));
        let seen = node(2, keys);
        assert_eq!(scene.read(&Ok(seen.clone())), None);
        let alone = scene.due_removal(&seen);
        assert_eq!(alone.taints.len(), 1);
        scene.sent(&alone, &refused(403, true));
        assert!(scene.read(&Ok(seen)).is_some(), "{keys:?}");
    }
}

#[test]
fn a_denial_whose_text_has_a_clock_or_an_id_is_reported_once() {
    let mut scene = Scene::new();
    let tainted = node(1, &["one"]);
    let mut firsts = 0;
    for attempt in 0..5 {
        let removal = scene.due_removal(&tainted);
        let message = format!("denied at 12:00:0{attempt} (request 7f3a-{attempt})");
        scene.sent(&removal, &refused_with(403, &message));
        let denied = scene.read(&Ok(tainted.clone())).unwrap();
        assert_eq!(
            denied.message,
            format!("403: {message}"),
            "as the server sent it"
        );
        firsts += u8::from(denied.first);
    }
    assert_eq!(firsts, 1);
}

#[test]
fn when_a_patch_of_several_taints_is_denied_each_is_tried_alone() {
    let mut scene = Scene::new();
    let tainted = node(1, &KEYS);
    assert_eq!(
        scene.deny(&tainted),
        (vec!["two".into(), "one".into()], None)
    );
    let (first, outcome) = scene.deny(&tainted);
    assert!(matches!(outcome, Some(Denied { first: true, .. })));
    let other = scene.due_removal(&tainted);
    assert_ne!(keys(&other.taints), first, "the other one is not held up");
    let left = node(2, &[&first[0]]);
    assert_eq!(scene.sent(&other, &Ok(left.clone())), MustRead::No);
    assert_eq!(keys(&scene.due_removal(&left).taints), first);
}

#[test]
fn a_taint_never_denied_does_not_go_with_one_that_is() {
    let mut scene = Scene::new();
    scene.deny(&node(1, &["one"]));
    let removal = scene.due_removal(&node(2, &KEYS));
    assert_eq!(keys(&removal.taints), ["two"]);
}

#[test]
fn a_taint_that_may_not_be_put_back_does_not_hold_up_a_removal_and_is_tried_less_and_less_often() {
    let mut scene = Scene::new();
    let one = matchers().remove(0);
    let put_back = Wanted {
        put_back: vec![matchers()[1].to_taint()],
        ..Wanted::default()
    };
    let before = node(1, &["foreign"]);
    let mut waits = Vec::new();
    for _ in 0..2 {
        let Next::Send(Request::Patch(change)) = scene.writes.next(scene.now, &before, &put_back)
        else {
            panic!("no change is due");
        };
        assert_eq!(change.action, Action::PutBack);
        scene.sent(&change, &refused(403, true));
        let answer = Ok(before.clone());
        let outcome = scene.writes.got(scene.now, &put_back, &answer);
        let [Denied { action, .. }] = outcome.as_slice() else {
            panic!("{outcome:?}");
        };
        assert_eq!(*action, Action::PutBack);
        let Next::Wait(Some(until)) = scene.writes.next(scene.now, &before, &put_back) else {
            panic!("no wait");
        };
        waits.push(until - scene.now);
        scene.now = until;
    }
    assert!(waits[1] >= 2 * DENIED_BASE, "{waits:?}");
    let both = Wanted {
        remove: vec![(&one).into()],
        ..put_back
    };
    let tainted = node(2, &["one"]);
    let Next::Send(Request::Patch(change)) = scene.writes.next(scene.now, &tainted, &both) else {
        panic!("no change is due");
    };
    assert_eq!(change.action, Action::Remove);
}

#[test]
fn a_taint_that_was_absent_and_comes_back_waits_for_no_denial() {
    let mut scene = Scene::new();
    let tainted = node(1, &["one"]);
    scene.deny(&tainted);
    assert!(matches!(scene.next(&tainted), Next::Wait(Some(_))));
    assert_eq!(scene.next(&node(2, &[])), Next::Wait(None));
    assert!(matches!(scene.next(&node(3, &["one"])), Next::Send(_)));
}

/// Two rules that differ only in the value: each step alone still selects both.
#[test]
fn several_put_backs_with_the_same_key_and_effect_are_not_tried_again_without_a_wait() {
    let mut scene = Scene::new();
    let with_value = |value: &str| Taint {
        value: Some(value.into()),
        ..matchers()[0].to_taint()
    };
    let both = Wanted {
        put_back: vec![with_value("a"), with_value("b")],
        ..Wanted::default()
    };
    let clean = node(1, &[]);
    for _ in 0..3 {
        let Next::Send(Request::Patch(change)) = scene.writes.next(scene.now, &clean, &both) else {
            panic!("no change is due");
        };
        assert_eq!(change.taints.len(), 2);
        scene.sent(&change, &refused(422, true));
        scene.writes.got(scene.now, &both, &Ok(clean.clone()));
        let Next::Wait(Some(until)) = scene.writes.next(scene.now, &clean, &both) else {
            panic!("no wait");
        };
        assert!(until - scene.now >= DENIED_BASE);
        scene.now = until;
    }
}

#[test]
fn a_later_put_back_that_is_denied_is_reported_too_and_does_not_wait_for_the_earlier_denial() {
    let mut scene = Scene::new();
    let put_back = Wanted {
        put_back: vec![matchers()[0].to_taint()],
        ..Wanted::default()
    };
    let clean = node(1, &["foreign"]);
    for _ in 0..2 {
        let Next::Send(Request::Patch(change)) = scene.writes.next(scene.now, &clean, &put_back)
        else {
            panic!("no change is due");
        };
        scene.sent(&change, &refused(403, true));
        let outcome = scene.writes.got(scene.now, &put_back, &Ok(clean.clone()));
        assert!(
            matches!(outcome.as_slice(), [Denied { first: true, .. }]),
            "{outcome:?}"
        );
        // The gates open, and nothing is to be put back.
        let rest = scene.writes.next(scene.now, &clean, &Wanted::default());
        assert_eq!(rest, Next::Wait(None));
    }
}

#[test]
fn after_a_reload_earlier_denials_are_no_reason_to_wait() {
    let mut scene = Scene::new();
    let tainted = node(1, &["one"]);
    scene.deny(&tainted);
    assert!(matches!(scene.next(&tainted), Next::Wait(Some(_))));
    scene.writes.forget_denials();
    assert!(matches!(scene.next(&tainted), Next::Send(_)));
}
