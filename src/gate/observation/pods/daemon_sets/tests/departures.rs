//! A DaemonSet that replaces its pod.

use super::*;

/// Judges one gate at one second after another.
struct Scene {
    gate: config::Pods,
    start: Instant,
    departures: Departures,
}

impl Scene {
    fn new(gate: config::Pods) -> Self {
        Self {
            gate,
            start: Instant::now(),
            departures: Departures::default(),
        }
    }

    fn at(&mut self, second: u64, pods: &[Value]) -> Judgement {
        let time = Duration::from_secs(second);
        let clock: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
        let now = (self.start + time, clock + time);
        judgement(&self.gate, pods, now, &mut self.departures)
    }

    fn outcome(&mut self, second: u64, pods: &[Value]) -> Outcome {
        self.at(second, pods).outcome
    }
}

fn unknown(words: &str) -> Outcome {
    Outcome::Unknown(words.into())
}

fn waits(set: &str, second: u64) -> String {
    format!(
        "{set} has had no pod since 2026-01-01T00:00:{second:02}Z, and untaint waits 1m for its next one"
    )
}

#[test]
fn between_two_pods_of_a_daemon_set_it_is_not_known_to_be_ready() {
    let [a, b] = [pod("a", "a-1"), pod("b", "b-1")];
    let next = newer(pod("a", "a-2"));
    let mut scene = Scene::new(gate(true, &[]));
    let is_open = || open(&format!("2 of 2 {OPEN}"));
    let gap = |second| unknown(&format!("1 of 2 {UNKNOWN}: {}", waits("a", second)));
    assert_eq!(scene.outcome(0, &[a.clone(), b.clone()]), is_open());
    // An hour of silence is no absence.
    let pods = [terminating(a.clone()), b.clone()];
    let expected = closed(&format!("1 of 2 {CLOSED}: pod a-1 is terminating"));
    assert_eq!(scene.outcome(10, &pods), expected);
    assert_eq!(scene.outcome(20, std::slice::from_ref(&b)), gap(20));
    assert_eq!(scene.outcome(50, std::slice::from_ref(&b)), gap(20));
    let pods = [unready(next.clone()), b.clone()];
    let expected = closed(&format!("1 of 2 {CLOSED}: pod a-2 is not ready"));
    assert_eq!(scene.outcome(51, &pods), expected);
    assert_eq!(scene.outcome(52, &[next, b.clone()]), is_open());
    // It begins again with each pod.
    assert_eq!(scene.outcome(53, std::slice::from_ref(&b)), gap(53));
    // A DaemonSet that is not ready matters more.
    let expected = closed(&format!("1 of 2 {CLOSED}: pod b-1 is not ready"));
    assert_eq!(scene.outcome(54, &[unready(b)]), expected);
}

#[test]
fn a_daemon_set_that_stays_without_a_pod_is_forgotten_after_a_minute_without_any_event() {
    let b = [pod("b", "b-1")];
    for pods in [&b[..], &[]] {
        let mut scene = Scene::new(gate(true, &[]));
        let first = scene.at(0, &[pod("a", "a-1"), b[0].clone()]);
        assert_eq!(first.valid_for, None);
        scene.at(2, &[pod("a", "a-1"), b[0].clone()]);
        let gap = scene.at(5, pods);
        assert!(gap.outcome.is_unknown(), "{:?}", gap.outcome);
        assert_eq!(gap.valid_for, Some(Duration::from_mins(1)));
        let later = scene.at(64, pods);
        assert!(later.outcome.is_unknown());
        assert_eq!(later.valid_for, Some(Duration::from_secs(1)));
        let end = scene.at(65, pods);
        let expected = match pods {
            [] => closed(NONE),
            _ => open(&format!("1 of 1 {OPEN}")),
        };
        assert_eq!((end.outcome, end.valid_for), (expected, None));
    }
}

#[test]
fn only_those_are_waited_for_whose_next_pod_may_come_while_the_taint_is_there() {
    let b = || pod("b", "b-1");
    let is_open = |words: &str| open(&format!("1 of 1 {OPEN}{words}"));
    for gone in [
        intolerant(pod("a", "a-1")),
        terminating(intolerant(pod("a", "a-1"))),
        unready(pod("a", "own")),
    ] {
        let mut scene = Scene::new(gate(true, &[]));
        scene.at(0, &[gone, b()]);
        assert_eq!(scene.outcome(1, &[b()]), is_open(""));
    }
    // Whoever is not named is nobody's concern.
    let mut scene = Scene::new(gate(false, &["b"]));
    scene.at(0, &[pod("a", "a-1"), b()]);
    assert_eq!(scene.outcome(1, &[b()]), is_open(""));
}

/// Without its name, nothing would be known of it after a minute.
#[test]
fn a_named_daemon_set_without_a_pod_is_not_ready_at_any_time() {
    let b = [pod("b", "b-1")];
    for every in [false, true] {
        let mut scene = Scene::new(gate(every, &["a", "b"]));
        scene.at(0, &[pod("a", "a-1"), b[0].clone()]);
        for second in [1, 60, 61, 1000] {
            let outcome = scene.outcome(second, &b);
            let expected = format!("1 of 2 {CLOSED}: a has no pod; ");
            assert!(outcome.message().starts_with(&expected), "{outcome:?}");
            assert_eq!(outcome.state(), State::Closed);
        }
    }
}
