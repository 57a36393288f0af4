mod denials;
mod trouble;

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
        remove: matchers.iter().map(Into::into).collect(),
        put_back: Vec::new(),
    }
}

fn refused(code: u16, detailed: bool) -> Answer {
    Err(ApiError::Refused {
        code,
        message: "no".into(),
        detailed,
        retry_after: None,
    })
}

fn refused_with(code: u16, message: &str) -> Answer {
    Err(ApiError::Refused {
        code,
        message: message.into(),
        detailed: code == 403,
        retry_after: None,
    })
}

fn throttled(seconds: u64) -> Answer {
    let retry_after = Some(Duration::from_secs(seconds));
    Err(ApiError::Refused {
        code: 429,
        message: "too many requests".into(),
        detailed: false,
        retry_after,
    })
}

fn get() -> Next<Request> {
    Next::Send(Request::Get("u".into()))
}

fn lost() -> Answer {
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

    fn next(&mut self, node: &NodeView) -> Next<Request> {
        self.writes.next(self.now, node, &wanted(&self.matchers))
    }

    /// Waits until a request is due.
    fn next_due(&mut self, node: &NodeView) -> Next<Request> {
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
            Next::Send(Request::Patch(removal)) => removal,
            other => panic!("{other:?} instead of a removal"),
        }
    }

    fn sent(&mut self, removal: &Change, answer: &Answer) -> MustRead {
        self.writes.patched(self.now, removal, answer);
        self.writes.must_read
    }

    /// With at most one taint, so that at most one can be denied.
    fn read(&mut self, answer: &Answer) -> Option<Denied> {
        let denied = self.writes.got(self.now, &wanted(&self.matchers), answer);
        assert!(denied.len() <= 1, "{denied:?}");
        denied.into_iter().next()
    }

    /// Sends what is due, has it refused by a policy, and reads the unchanged Node.
    fn deny(&mut self, node: &NodeView) -> (Vec<String>, Option<Denied>) {
        let removal = self.due_removal(node);
        let must_read = self.sent(&removal, &refused(403, true));
        assert_eq!(must_read, MustRead::BeforeNextPatch);
        assert_eq!(self.next(node), get());
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
    let must_read = scene.sent(&removal, &Ok(node(2, &[])));
    assert_eq!(must_read, MustRead::No);
    assert_eq!(scene.next(&node(2, &[])), Next::Wait(None));
}

#[test]
fn after_each_conflict_or_failed_test_the_node_is_read_and_the_patch_is_computed_again() {
    for answer in [refused(409, true), refused(422, false)] {
        let mut scene = Scene::new();
        let tainted = node(1, &["one"]);
        for _ in 0..50 {
            let removal = scene.due_removal(&tainted);
            let must_read = scene.sent(&removal, &answer);
            assert_eq!(must_read, MustRead::BeforeNextPatch);
            let before = scene.now;
            assert_eq!(scene.next_due(&tainted), get());
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
        let must_read = scene.sent(&removal, &Ok(node(10, &["foreign"])));
        assert_eq!(must_read, MustRead::No);
    }
}

#[test]
fn after_an_unknown_outcome_the_node_is_read_before_anything_is_sent_again() {
    for answer in [
        lost(),
        refused(500, false),
        refused(504, true),
        refused(401, false),
    ] {
        let mut scene = Scene::new();
        let tainted = node(1, &["one"]);
        let removal = scene.due_removal(&tainted);
        let is_known = answer.as_ref().err().and_then(ApiError::code) == Some(401);
        let must_read = scene.sent(&removal, &answer);
        assert_eq!(must_read == MustRead::BeforeNextPatch, is_known);
        assert_eq!(must_read == MustRead::AtOnce, !is_known);
        assert_eq!(scene.next_due(&tainted), get());
        assert_eq!(scene.read(&lost()), None);
        assert_eq!(scene.next_due(&tainted), get(), "a failed read is repeated");
        assert_eq!(scene.read(&Ok(node(2, &[]))), None);
        assert_eq!(
            scene.next(&node(2, &[])),
            Next::Wait(None),
            "it had been applied after all"
        );
    }
}

#[test]
fn after_a_removal_that_was_canceled_the_node_is_read_before_anything_is_sent() {
    let mut scene = Scene::new();
    let tainted = node(1, &KEYS);
    scene.due_removal(&tainted);
    scene.writes.canceled();
    assert_eq!(scene.next(&tainted), get());
    scene.read(&Ok(node(2, &["one"])));
    let removal = scene.due_removal(&node(2, &["one"]));
    assert_eq!(keys(&removal.taints), ["one"]);
}

#[test]
fn after_a_429_nothing_is_sent_before_retry_after_and_no_read_replaces_it() {
    let mut scene = Scene::new();
    let tainted = node(1, &["one"]);
    for _ in 0..3 {
        let removal = scene.due_removal(&tainted);
        assert_eq!(scene.sent(&removal, &throttled(5)), MustRead::No);
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
fn a_gate_that_closes_meanwhile_does_not_replace_the_read() {
    for (answer, at_once) in [(lost(), get()), (refused(409, false), Next::Wait(None))] {
        let mut scene = Scene::new();
        let tainted = node(1, &["one"]);
        let removal = scene.due_removal(&tainted);
        scene.sent(&removal, &answer);
        scene.now += RETRY_CAP;
        assert_eq!(
            scene.writes.next(scene.now, &tainted, &Wanted::default()),
            at_once,
            "whether it took effect must be known"
        );
        assert_eq!(scene.next_due(&tainted), get());
    }
}

#[test]
fn a_wait_can_be_ended_as_after_a_renewal_of_the_credentials_and_the_node_is_read_first() {
    for code in [401, 503, 409] {
        let mut scene = Scene::new();
        let tainted = node(1, &["one"]);
        let removal = scene.due_removal(&tainted);
        let must_read = scene.sent(&removal, &refused(code, false));
        // Only a server in trouble may have done something.
        assert_eq!(must_read == MustRead::AtOnce, code == 503, "{code}");
        assert!(
            matches!(scene.next(&tainted), Next::Wait(Some(_))),
            "{code}"
        );
        scene.writes.retry_now();
        assert_eq!(scene.next(&tainted), get(), "{code}");
    }
}
