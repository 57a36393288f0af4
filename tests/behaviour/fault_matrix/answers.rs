//! Answers that are not the ones wished for.

use testkit::api::{Answer, Verb};

use super::{Case, When, exactly, survive};
use crate::scene::{FOREIGN, Gates, OnStandIn, TAINT};

fn internal_error() -> Answer {
    Answer::failure(500, "InternalError", "etcd is away")
}

fn unavailable() -> Answer {
    Answer::failure(503, "ServiceUnavailable", "try later")
}

#[tokio::test]
async fn a_removal_that_is_answered_by_a_failure_is_tried_again() {
    survive(vec![
        Case {
            name: "patch-429",
            when: When::Watching,
            fault: |scene| {
                let busy = Answer::too_many_requests(1);
                scene.middle.respond_next(Verb::Patch, 2, busy);
            },
            heal: None,
            // A 429 says for certain that nothing happened.
            spent: exactly(1, 0, 3, 1),
            within: 2..=4,
        },
        Case {
            name: "patch-500",
            when: When::Watching,
            fault: |scene| scene.middle.respond_next(Verb::Patch, 2, internal_error()),
            heal: None,
            spent: exactly(1, 2, 3, 1),
            within: 1..=2,
        },
        Case {
            name: "patch-503",
            when: When::Watching,
            fault: |scene| scene.middle.respond_next(Verb::Patch, 2, unavailable()),
            heal: None,
            spent: exactly(1, 2, 3, 1),
            within: 1..=2,
        },
        Case {
            name: "get-500",
            when: When::Watching,
            fault: |scene| {
                scene.middle.respond_next(Verb::Patch, 1, unavailable());
                scene.middle.respond_next(Verb::Get, 2, internal_error());
            },
            heal: None,
            spent: exactly(1, 3, 2, 1),
            within: 1..=3,
        },
        Case {
            name: "get-429",
            when: When::Watching,
            fault: |scene| {
                let busy = Answer::too_many_requests(1);
                scene.middle.respond_next(Verb::Patch, 1, unavailable());
                scene.middle.respond_next(Verb::Get, 1, busy);
            },
            heal: None,
            spent: exactly(1, 2, 2, 1),
            within: 1..=3,
        },
    ])
    .await;
}

#[tokio::test]
async fn a_watch_that_is_answered_by_a_failure_is_tried_again() {
    survive(vec![
        Case {
            name: "watch-429",
            when: When::Start,
            fault: |scene| {
                let busy = Answer::too_many_requests(1);
                scene.middle.respond_next(Verb::Watch, 2, busy);
            },
            heal: None,
            spent: exactly(3, 0, 1, 1),
            within: 2..=4,
        },
        Case {
            name: "watch-500",
            when: When::Start,
            fault: |scene| scene.middle.respond_next(Verb::Watch, 3, internal_error()),
            heal: None,
            spent: exactly(4, 0, 1, 1),
            within: 1..=4,
        },
        Case {
            name: "watch-503",
            when: When::Start,
            fault: |scene| scene.middle.respond_next(Verb::Watch, 3, unavailable()),
            heal: None,
            spent: exactly(4, 0, 1, 1),
            within: 1..=4,
        },
        Case {
            name: "watch-410-as-status",
            when: When::Start,
            fault: |scene| scene.middle.respond_next(Verb::Watch, 2, Answer::expired()),
            heal: None,
            spent: exactly(3, 0, 1, 1),
            within: 0..=2,
        },
        Case {
            name: "watch-410-as-first-event",
            when: When::Start,
            fault: |scene| {
                let expired = Answer::expired_event();
                scene.middle.respond_next(Verb::Watch, 2, expired);
            },
            heal: None,
            spent: exactly(3, 0, 1, 1),
            within: 0..=2,
        },
        Case {
            name: "watch-410-later-and-again",
            when: When::Watching,
            fault: |scene| {
                scene.middle.respond_next(Verb::Watch, 1, Answer::expired());
                scene.middle.expire_watches();
            },
            heal: None,
            // What is known does for the removal.
            spent: exactly(3, 0, 1, 1),
            within: 0..=2,
        },
    ])
    .await;
}

/// On the stand-in: the real server sends one a minute.
#[tokio::test]
async fn a_watch_of_nothing_but_bookmarks_is_a_good_one() {
    let scene = OnStandIn::with(&[FOREIGN], Gates::open().await).await;
    let agent = scene.agent(&[]);
    agent.wait_for_message("watching the node").await.unwrap();
    for _ in 0..500 {
        scene.server.send_bookmark();
    }
    scene.set_taints(&[FOREIGN, TAINT]);
    scene.wait_for_taints(&[FOREIGN]).await;
    agent.wait_for_message("removed the taint").await.unwrap();
    assert_eq!(scene.verbs(), [Verb::Watch, Verb::Patch]);
}
