use serde_json::json;

use super::*;
use crate::taint::TaintMatcher;

const KEYS: [&str; 2] = ["one", "two"];

fn node(version: u64, keys: &[&str]) -> NodeView {
    let taints: Vec<_> = keys
        .iter()
        .map(|key| json!({"key": key, "effect": "NoSchedule"}))
        .collect();
    let metadata = json!({"name": "node", "uid": "u", "resourceVersion": version.to_string()});
    serde_json::from_value(json!({"metadata": metadata, "spec": {"taints": taints}})).unwrap()
}

fn matchers() -> Vec<TaintMatcher> {
    KEYS.iter()
        .map(|key| TaintMatcher {
            key: (*key).into(),
            value: None,
            effect: None,
        })
        .collect()
}

fn wanted(matchers: &[TaintMatcher]) -> Wanted<'_> {
    Wanted {
        remove: matchers.iter().collect(),
        put_back: Vec::new(),
    }
}

fn refused(code: u16, detailed: bool) -> Result<NodeView, ApiError> {
    Err(ApiError::Refused {
        code,
        message: "no".into(),
        detailed,
        retry_after: None,
    })
}

fn throttled(seconds: u64) -> Result<NodeView, ApiError> {
    let retry_after = Some(Duration::from_secs(seconds));
    Err(ApiError::Refused {
        code: 429,
        message: "too many requests".into(),
        detailed: false,
        retry_after,
    })
}

fn lost() -> Result<NodeView, ApiError> {
    Err(ApiError::Transport("no answer within 5 s".into()))
}

/// The writes to a Node with both taints, at a time that only moves when a test moves it.
struct Scene {
    now: Instant,
    writes: Writes,
    matchers: Vec<TaintMatcher>,
}

impl Scene {
    fn new() -> Self {
        Self {
            now: Instant::now(),
            writes: Writes::default(),
            matchers: matchers(),
        }
    }

    fn next(&mut self, node: &NodeView) -> Next {
        self.writes.next(self.now, node, &wanted(&self.matchers))
    }

    /// Waits as long as it is told to.
    fn next_due(&mut self, node: &NodeView) -> Next {
        match self.next(node) {
            Next::Wait(Some(until)) => {
                self.now = until;
                self.next(node)
            }
            next => next,
        }
    }

    fn due_removal(&mut self, node: &NodeView) -> Change {
        match self.next_due(node) {
            Next::Send(removal) => removal,
            other => panic!("{other:?} instead of a removal"),
        }
    }

    fn sent(&mut self, removal: &Change, answer: &Result<NodeView, ApiError>) -> Option<Verdict> {
        self.writes.sent(self.now, removal, answer)
    }

    fn read(&mut self, answer: &Result<NodeView, ApiError>) -> Option<Verdict> {
        self.writes.read(self.now, &wanted(&self.matchers), answer)
    }

    /// Sends what is due, has it refused by a policy, and reads the unchanged Node.
    fn deny(&mut self, node: &NodeView) -> (Vec<String>, Option<Verdict>) {
        let removal = self.due_removal(node);
        assert_eq!(self.sent(&removal, &refused(403, true)), None);
        assert_eq!(self.next(node), Next::Read);
        (keys(&removal.taints), self.read(&Ok(node.clone())))
    }
}

fn keys(taints: &[Taint]) -> Vec<String> {
    taints.iter().map(|taint| taint.key.clone()).collect()
}

#[test]
fn all_ready_taints_go_in_one_patch() {
    let mut scene = Scene::new();
    let tainted = node(1, &KEYS);
    let removal = scene.due_removal(&tainted);
    assert_eq!(keys(&removal.taints), ["two", "one"]);
    let verdict = scene.sent(&removal, &Ok(node(2, &[])));
    assert_eq!(verdict, Some(Verdict::Done));
    assert_eq!(scene.next(&node(2, &[])), Next::Wait(None));
}

#[test]
fn a_conflict_or_a_failed_test_has_the_node_read_and_the_patch_computed_again_without_end() {
    for answer in [refused(409, true), refused(422, false)] {
        let mut scene = Scene::new();
        let tainted = node(1, &["one"]);
        for _ in 0..50 {
            let removal = scene.due_removal(&tainted);
            assert_eq!(scene.sent(&removal, &answer), None);
            let before = scene.now;
            assert_eq!(scene.next_due(&tainted), Next::Read);
            assert!(scene.now - before <= RETRY_CAP);
            assert_eq!(scene.read(&Ok(tainted.clone())), None);
        }
        let moved = node(9, &["foreign", "one"]);
        let removal = scene.due_removal(&moved);
        assert!(
            serde_json::to_string(&removal.operations)
                .unwrap()
                .contains("/spec/taints/1/key")
        );
        assert!(matches!(
            scene.sent(&removal, &Ok(node(10, &["foreign"]))),
            Some(Verdict::Done)
        ));
    }
}

#[test]
fn an_unknown_outcome_has_the_node_read_before_anything_is_sent_again() {
    for answer in [
        lost(),
        refused(500, false),
        refused(504, true),
        refused(401, false),
    ] {
        let mut scene = Scene::new();
        let tainted = node(1, &["one"]);
        let removal = scene.due_removal(&tainted);
        let verdict = scene.sent(&removal, &answer);
        let is_unknown = answer.as_ref().err().and_then(ApiError::code) != Some(401);
        assert_eq!(verdict, is_unknown.then_some(Verdict::Unanswered));
        assert_eq!(scene.next_due(&tainted), Next::Read);
        assert_eq!(scene.read(&lost()), None);
        assert_eq!(
            scene.next_due(&tainted),
            Next::Read,
            "a failed read is repeated"
        );
        assert_eq!(scene.read(&Ok(node(2, &[]))), None);
        assert_eq!(
            scene.next(&node(2, &[])),
            Next::Wait(None),
            "it had been applied after all"
        );
    }
}

#[test]
fn after_a_removal_that_was_broken_off_the_node_is_read_before_anything_is_sent() {
    let mut scene = Scene::new();
    let tainted = node(1, &KEYS);
    scene.due_removal(&tainted);
    scene.writes.broken_off();
    assert_eq!(scene.next(&tainted), Next::Read);
    scene.read(&Ok(node(2, &["one"])));
    let removal = scene.due_removal(&node(2, &["one"]));
    assert_eq!(keys(&removal.taints), ["one"]);
}

#[test]
fn a_server_that_asks_to_be_left_alone_is_and_is_not_read_instead() {
    let mut scene = Scene::new();
    let tainted = node(1, &["one"]);
    for _ in 0..3 {
        let removal = scene.due_removal(&tainted);
        assert_eq!(scene.sent(&removal, &throttled(5)), None);
        let Next::Wait(Some(until)) = scene.next(&tainted) else {
            panic!("it should wait")
        };
        assert!(until >= scene.now + Duration::from_secs(5));
    }
}

#[test]
fn a_gate_that_flaps_does_not_shorten_the_wait_that_the_server_asked_for() {
    let mut scene = Scene::new();
    let tainted = node(1, &["one"]);
    let removal = scene.due_removal(&tainted);
    scene.sent(&removal, &throttled(5));
    assert_eq!(
        scene.writes.next(scene.now, &tainted, &Wanted::default()),
        Next::Wait(None)
    );
    assert!(matches!(scene.next(&tainted), Next::Wait(Some(_))));
}

#[test]
fn a_denial_is_told_once_and_tried_again_ever_more_rarely() {
    let mut scene = Scene::new();
    let tainted = node(1, &["one"]);
    let mut firsts = Vec::new();
    let mut waits = Vec::new();
    for _ in 0..12 {
        let (_, verdict) = scene.deny(&tainted);
        let Some(Verdict::Denied { message, first, .. }) = verdict else {
            panic!("{verdict:?}")
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
        matches!(scene.sent(&removal, &Ok(node(2, &[]))), Some(Verdict::Done)),
        "recovers unaided"
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
    let Next::Send(removal) =
        scene
            .writes
            .next(scene.now, &tainted, &wanted(std::slice::from_ref(&one)))
    else {
        panic!("it is due")
    };
    assert_eq!(
        scene.writes.sent(scene.now, &removal, &refused(403, true)),
        None
    );
    assert!(
        scene
            .writes
            .read(
                scene.now,
                &wanted(std::slice::from_ref(&one)),
                &Ok(tainted.clone())
            )
            .is_some()
    );
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
fn a_refusal_of_a_node_that_may_not_be_read_either_is_told_at_once_and_tried_again_soon() {
    let mut scene = Scene::new();
    let tainted = node(1, &["one"]);
    let removal = scene.due_removal(&tainted);
    scene.sent(&removal, &refused(403, true));
    assert_eq!(scene.next(&tainted), Next::Read);
    assert!(matches!(
        scene.read(&refused(403, true)),
        Some(Verdict::Denied { first: true, .. })
    ));
    let Next::Wait(Some(until)) = scene.next(&tainted) else {
        panic!("it should wait")
    };
    assert!(until - scene.now <= DENIED_BASE * 2);
    scene.due_removal(&tainted);
}

#[test]
fn a_gate_that_closes_meanwhile_does_not_make_up_for_the_read() {
    let mut scene = Scene::new();
    let tainted = node(1, &["one"]);
    let removal = scene.due_removal(&tainted);
    scene.sent(&removal, &lost());
    scene.now += RETRY_CAP;
    assert_eq!(
        scene.writes.next(scene.now, &tainted, &Wanted::default()),
        Next::Wait(None)
    );
    assert_eq!(scene.next_due(&tainted), Next::Read);
}

#[test]
fn a_refusal_of_a_patch_that_is_no_longer_right_is_no_denial() {
    let mut scene = Scene::new();
    let removal = scene.due_removal(&node(1, &["one"]));
    scene.sent(&removal, &refused(422, true));
    let moved = node(2, &["foreign", "one"]);
    assert_eq!(scene.read(&Ok(moved.clone())), None);
    assert_ne!(scene.due_removal(&moved), removal);
}

#[test]
fn when_a_patch_of_several_taints_is_denied_each_is_tried_alone() {
    let mut scene = Scene::new();
    let tainted = node(1, &KEYS);
    assert_eq!(
        scene.deny(&tainted),
        (vec!["two".into(), "one".into()], None)
    );
    let (first, verdict) = scene.deny(&tainted);
    assert!(matches!(verdict, Some(Verdict::Denied { first: true, .. })));
    let other = scene.due_removal(&tainted);
    assert_ne!(keys(&other.taints), first, "the other one is not held up");
    let left = node(2, &[&first[0]]);
    assert_eq!(scene.sent(&other, &Ok(left.clone())), Some(Verdict::Done));
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
        let Next::Send(change) = scene.writes.next(scene.now, &before, &put_back) else {
            panic!("no change is due");
        };
        assert_eq!(change.action, Action::PutBack);
        scene.sent(&change, &refused(403, true));
        let answer = Ok(before.clone());
        let verdict = scene.writes.read(scene.now, &put_back, &answer);
        assert!(
            matches!(
                verdict,
                Some(Verdict::Denied {
                    action: Action::PutBack,
                    ..
                })
            ),
            "{verdict:?}"
        );
        let Next::Wait(Some(until)) = scene.writes.next(scene.now, &before, &put_back) else {
            panic!("no wait");
        };
        waits.push(until - scene.now);
        scene.now = until;
    }
    assert!(waits[1] >= 2 * DENIED_BASE, "{waits:?}");
    let both = Wanted {
        remove: vec![&one],
        ..put_back
    };
    let tainted = node(2, &["one"]);
    let Next::Send(change) = scene.writes.next(scene.now, &tainted, &both) else {
        panic!("no change is due");
    };
    assert_eq!(change.action, Action::Remove);
}

#[test]
fn a_taint_that_is_gone_and_comes_back_has_no_denial_to_wait_for() {
    let mut scene = Scene::new();
    let tainted = node(1, &["one"]);
    scene.deny(&tainted);
    assert!(matches!(scene.next(&tainted), Next::Wait(Some(_))));
    assert_eq!(scene.next(&node(2, &[])), Next::Wait(None));
    assert!(matches!(scene.next(&node(3, &["one"])), Next::Send(_)));
}
