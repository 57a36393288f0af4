//! Changes that fail without a refusal.

use super::*;
use crate::node::writes::trouble::{self, LASTING};

/// Has every try answered so, and every read succeed. Returns how long it took until that was reported, and the report.
fn until_reported(scene: &mut Scene, tainted: &NodeView, answer: &Answer) -> (Duration, Denied) {
    let begun = scene.now;
    for _ in 0..50 {
        match scene.next_due(tainted) {
            Next::Send(Request::Get(_)) => assert_eq!(scene.read(&Ok(tainted.clone())), None),
            Next::Send(Request::Patch(change)) => {
                let denied = scene.writes.patched(scene.now, &change, answer);
                if let [denied] = denied.as_slice() {
                    return (scene.now - begun, denied.clone());
                }
            }
            Next::Wait(_) => panic!("nothing is due"),
        }
    }
    panic!("nothing is reported");
}

#[test]
fn an_answer_that_lasts_is_reported_with_its_message_once_and_tried_again_as_before() {
    let answers = [
        refused(409, true),
        refused(422, false),
        refused(404, true),
        refused(401, false),
        refused(408, false),
        refused(500, true),
        refused(503, false),
        throttled(1),
        Err(ApiError::Malformed("no JSON".into())),
    ];
    for answer in answers {
        let mut scene = Scene::new();
        let tainted = node(1, &["one"]);
        let (after, denied) = until_reported(&mut scene, &tainted, &answer);
        assert!(
            after >= LASTING && after <= LASTING + 2 * RETRY_CAP,
            "{after:?}"
        );
        let message = answer.as_ref().unwrap_err().to_string();
        assert_eq!(
            (denied.message, denied.first, denied.decided),
            (message, true, false)
        );
        assert_eq!(denied.taint.key, "one");
        let (_, again) = until_reported(&mut scene, &tainted, &answer);
        assert!(!again.first);
        let (_, other) = until_reported(&mut scene, &tainted, &refused_with(500, "another"));
        assert!(other.first);

        let removal = loop {
            match scene.next_due(&tainted) {
                Next::Send(Request::Patch(removal)) => break removal,
                _ => drop(scene.read(&Ok(tainted.clone()))),
            }
        };
        scene.sent(&removal, &Ok(node(2, &[])));
        assert_eq!(scene.next(&node(2, &[])), Next::Wait(None));
        let (after, denied) = until_reported(&mut scene, &node(3, &["one"]), &answer);
        assert!(denied.first && after >= LASTING, "it counts afresh");
    }
}

#[test]
fn answers_that_take_turns_are_reported_once_each_and_a_few_of_those_that_always_differ() {
    type Nth = fn(u32) -> Answer;
    fn letters(n: u32) -> String {
        let letter = |place| char::from(b'a' + u8::try_from((n >> (4 * place)) & 15_u32).unwrap());
        (0..3).map(letter).collect()
    }
    let turns: [(usize, Nth); 2] = [
        (3, |n| match n % 3 {
            0 => refused(409, true),
            1 => refused_with(500, "away"),
            _ => refused_with(503, "busy"),
        }),
        (trouble::MOST_KINDS, |n| refused_with(500, &letters(n))),
    ];
    for (expected, answer) in turns {
        let mut scene = Scene::new();
        let tainted = node(1, &["one"]);
        let mut told = 0;
        for n in 0..200 {
            let answer = answer(n);
            let denied = match scene.next_due(&tainted) {
                // The reads fail now and then as well.
                Next::Send(Request::Get(_)) if n % 4 == 0 => {
                    scene.read(&answer).into_iter().collect()
                }
                Next::Send(Request::Get(_)) => {
                    scene.read(&Ok(tainted.clone())).into_iter().collect()
                }
                Next::Send(Request::Patch(change)) => {
                    scene.writes.patched(scene.now, &change, &answer)
                }
                Next::Wait(_) => panic!("nothing is due"),
            };
            told += denied.iter().filter(|denied| denied.first).count();
        }
        assert_eq!(told, expected);
    }
}

#[test]
fn a_read_that_fails_is_trouble_for_the_change_that_waits_for_it() {
    let mut scene = Scene::new();
    let tainted = node(1, &["one"]);
    let removal = scene.due_removal(&tainted);
    scene.sent(&removal, &lost());
    assert_eq!(scene.writes.failing(), Some(&removal));
    let not_found = refused(404, true);
    let begun = scene.now;
    let denied = loop {
        assert_eq!(scene.next_due(&tainted), get());
        if let Some(denied) = scene.read(&not_found) {
            break denied;
        }
    };
    assert!(scene.now - begun >= LASTING);
    assert_eq!(
        (denied.message.as_str(), denied.decided),
        ("404: no", false)
    );
}

#[test]
fn a_server_that_cannot_be_reached_and_trouble_that_ends_are_not_reported() {
    let mut scene = Scene::new();
    let tainted = node(1, &["one"]);
    let removal = scene.due_removal(&tainted);
    for _ in 0..3 {
        scene.now += LASTING;
        assert_eq!(scene.writes.patched(scene.now, &removal, &lost()), []);
    }
    scene.now += LASTING;
    // A gate closes, and the change is not wanted any more.
    scene.read(&Ok(tainted.clone()));
    scene.writes.next(scene.now, &tainted, &Wanted::default());
    assert_eq!(scene.writes.failing(), None);
    let conflict = refused(409, true);
    assert_eq!(scene.writes.patched(scene.now, &removal, &conflict), []);
}
