//! Requests that the server answers with a failure.

use std::ops::RangeInclusive;

use testkit::api::{Answer, Verb};

use super::{Case, Spent, When, exactly, survive};
use crate::scene::{FOREIGN, Gates, OnStandIn, TAINT};

/// The next requests with a verb, so many of them, get this answer.
type Answers = Vec<(Verb, usize, Answer)>;

fn answered(
    when: When,
    (name, answers, spent, within): (&'static str, Answers, Spent, RangeInclusive<u64>),
) -> Case {
    let fault = |scene: &super::Scene| {
        for (verb, count, answer) in answers {
            scene.middle.respond_next(verb, count, answer);
        }
    };
    Case::new(name, when, fault, spent, within)
}

fn busy() -> Answer {
    Answer::too_many_requests(1)
}

fn internal_error() -> Answer {
    Answer::failure(500, "InternalError", "etcd is away")
}

fn unavailable() -> Answer {
    Answer::failure(503, "ServiceUnavailable", "try later")
}

#[tokio::test]
async fn a_removal_that_is_answered_by_a_failure_is_tried_again() {
    use Verb::{Get, Patch};
    let cases = [
        // A 429 proves that nothing changed, so the Node is not read.
        (
            "patch-429",
            vec![(Patch, 2, busy())],
            exactly(1, 0, 3, 1),
            2..=4,
        ),
        (
            "patch-500",
            vec![(Patch, 2, internal_error())],
            exactly(1, 2, 3, 1),
            1..=2,
        ),
        (
            "patch-503",
            vec![(Patch, 2, unavailable())],
            exactly(1, 2, 3, 1),
            1..=2,
        ),
        (
            "get-500",
            vec![(Patch, 1, unavailable()), (Get, 2, internal_error())],
            exactly(1, 3, 2, 1),
            1..=3,
        ),
        (
            "get-429",
            vec![(Patch, 1, unavailable()), (Get, 1, busy())],
            exactly(1, 2, 2, 1),
            1..=3,
        ),
    ];
    survive(cases.map(|case| answered(When::Watching, case))).await;
}

#[tokio::test]
async fn a_watch_that_is_answered_by_a_failure_is_tried_again() {
    use Verb::Watch;
    let at_start = [
        (
            "watch-429",
            vec![(Watch, 2, busy())],
            exactly(3, 0, 1, 1),
            2..=4,
        ),
        (
            "watch-500",
            vec![(Watch, 3, internal_error())],
            exactly(4, 0, 1, 1),
            1..=4,
        ),
        (
            "watch-503",
            vec![(Watch, 3, unavailable())],
            exactly(4, 0, 1, 1),
            1..=4,
        ),
        (
            "watch-410-as-status",
            vec![(Watch, 2, Answer::expired())],
            exactly(3, 0, 1, 1),
            0..=2,
        ),
        (
            "watch-410-as-first-event",
            vec![(Watch, 2, Answer::expired_event())],
            exactly(3, 0, 1, 1),
            0..=2,
        ),
    ];
    let later = Case::new(
        "watch-410-later-and-again",
        When::Watching,
        |scene| {
            scene.middle.respond_next(Watch, 1, Answer::expired());
            scene.middle.expire_watches();
        },
        // The removal uses the Node that the agent knows already.
        exactly(3, 0, 1, 1),
        0..=2,
    );
    let at_start = at_start.map(|case| answered(When::Start, case));
    survive(at_start.into_iter().chain([later])).await;
}

/// On the stand-in, because a real server sends one bookmark a minute.
#[tokio::test]
async fn a_watch_of_nothing_but_bookmarks_is_a_good_one() {
    let scene = OnStandIn::with(&[FOREIGN], Gates::open().await).await;
    let agent = scene.agent(&[]);
    agent.wait_for_message("watching the Node").await.unwrap();
    for _ in 0..500 {
        scene.server.send_bookmark();
    }
    scene.set_taints(&[FOREIGN, TAINT]);
    scene.wait_for_taints(&[FOREIGN]).await;
    agent.wait_for_message("removed the taint").await.unwrap();
    assert_eq!(scene.verbs(), [Verb::Watch, Verb::Patch]);
}
