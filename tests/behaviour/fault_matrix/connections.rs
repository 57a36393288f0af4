//! Connections that cannot be made, break, fall silent or are slow.

use std::time::Duration;

use testkit::api::{Answer, Verb};
use testkit::proxy::{Direction, Mode};

use super::{Act, Case, REQUEST_FAILED, Scene, Spent, WATCH_FAILED, When, exactly, survive};

fn pass(scene: &Scene) {
    scene.proxy.set(Mode::Pass);
}

/// A connection is cut somewhere on the way of the patch or of its answer.
fn cut(name: &'static str, fault: Act) -> Case {
    Case {
        name,
        when: When::Watching,
        fault,
        heal: Some((WATCH_FAILED, pass)),
        spent: Spent {
            // Handshakes are cut, too, and no request comes of them.
            watches: 2..=2,
            gets: 0..=1,
            patches: 1..=2,
            connections: 2..=8,
        },
        within: 0..=5,
    }
}

/// A removal ends the connection, and there are so many patches in all.
fn broken(name: &'static str, patches: usize, fault: Act) -> Case {
    Case {
        name,
        when: When::Watching,
        fault,
        heal: None,
        // The watch and the removal may begin a connection at the same time, of which one is kept.
        spent: Spent {
            connections: 2..=3,
            ..exactly(2, 1, patches, 0)
        },
        within: 0..=1,
    }
}

/// Nothing comes of a removal until the agent has given it up.
fn silence(name: &'static str, fault: Act) -> Case {
    Case {
        name,
        when: When::Watching,
        fault,
        heal: Some((REQUEST_FAILED, pass)),
        // What was sent meanwhile arrives late; the Node is read before anything else is sent.
        spent: Spent {
            watches: 1..=2,
            gets: 1..=2,
            patches: 1..=2,
            connections: 2..=3,
        },
        within: 0..=5,
    }
}

/// The agent gets nowhere at the start.
fn away(name: &'static str, fault: Act) -> Case {
    Case {
        name,
        when: When::Start,
        fault,
        heal: Some((WATCH_FAILED, pass)),
        spent: Spent {
            connections: 2..=4,
            ..exactly(1, 0, 1, 0)
        },
        within: 0..=5,
    }
}

#[tokio::test]
async fn a_connection_that_breaks_at_any_stage_of_a_removal_is_replaced_and_the_node_read_first() {
    survive(vec![
        Case {
            name: "reset-before-the-request",
            when: When::Watching,
            fault: |scene| scene.proxy.reset_connections(),
            heal: None,
            spent: Spent {
                // Whether the gates or the news of the reset come first is open, and so is whether the watch and the
                // removal begin a connection at the same time, of which one is kept.
                patches: 1..=2,
                gets: 0..=1,
                connections: 2..=3,
                ..exactly(2, 0, 0, 0)
            },
            within: 0..=1,
        },
        broken("reset-before-it-is-applied", 2, |scene| {
            scene.middle.respond_next(Verb::Patch, 1, Answer::Reset);
        }),
        broken("reset-after-it-is-applied", 1, |scene| {
            let reset = Answer::ApplyAndReset;
            scene.middle.respond_next(Verb::Patch, 1, reset);
        }),
        broken("goaway-before-it-is-applied", 2, |scene| {
            scene.middle.respond_next(Verb::Patch, 1, Answer::GoAway);
        }),
        broken("goaway-after-it-is-applied", 1, |scene| {
            let goaway = Answer::ApplyAndGoAway;
            scene.middle.respond_next(Verb::Patch, 1, goaway);
        }),
        cut("cut-in-the-first-bytes-of-the-request", |scene| {
            scene.proxy.set(Mode::Cut(Direction::ToServer, 1));
        }),
        cut("cut-in-the-middle-of-the-request", |scene| {
            scene.proxy.set(Mode::Cut(Direction::ToServer, 200));
        }),
        cut("cut-in-the-first-bytes-of-the-answer", |scene| {
            scene.proxy.set(Mode::Cut(Direction::ToClient, 1));
        }),
        cut("cut-in-the-middle-of-the-answer", |scene| {
            scene.proxy.set(Mode::Cut(Direction::ToClient, 300));
        }),
    ])
    .await;
}

#[tokio::test]
async fn a_removal_that_has_no_answer_is_looked_after_on_another_connection() {
    survive(vec![
        Case {
            name: "silence-before-it-is-applied",
            when: When::Watching,
            fault: |scene| scene.middle.respond_next(Verb::Patch, 1, Answer::Hang),
            heal: None,
            spent: exactly(1, 1, 2, 2),
            within: 5..=6,
        },
        Case {
            name: "silence-after-it-is-applied",
            when: When::Watching,
            fault: |scene| {
                let silence = Answer::ApplyAndHang;
                scene.middle.respond_next(Verb::Patch, 1, silence);
            },
            heal: None,
            spent: exactly(1, 1, 1, 2),
            within: 0..=1,
        },
        silence("black-hole-around-the-removal", |scene| {
            scene.proxy.set(Mode::BlackHole);
        }),
        silence("nothing-reaches-the-server", |scene| {
            scene.proxy.set(Mode::Swallow(Direction::ToServer));
        }),
        silence("nothing-reaches-the-agent", |scene| {
            scene.proxy.set(Mode::Swallow(Direction::ToClient));
        }),
        silence("ten-bytes-a-second", |scene| {
            scene.proxy.set(Mode::Throttle(10));
        }),
    ])
    .await;
}

#[tokio::test]
async fn a_server_that_is_away_at_the_start_or_slow_is_waited_for() {
    survive(vec![
        away("refused-at-start", |scene| scene.proxy.set(Mode::Refuse)),
        away("black-hole-at-start", |scene| {
            scene.proxy.set(Mode::BlackHole);
        }),
        away("nothing-reaches-the-server-at-start", |scene| {
            scene.proxy.set(Mode::Swallow(Direction::ToServer));
        }),
        away("nothing-reaches-the-agent-at-start", |scene| {
            scene.proxy.set(Mode::Swallow(Direction::ToClient));
        }),
        away("ten-bytes-a-second-at-start", |scene| {
            scene.proxy.set(Mode::Throttle(10));
        }),
        Case {
            name: "a-narrow-line",
            when: When::Start,
            fault: |scene| scene.proxy.set(Mode::Throttle(4000)),
            heal: None,
            spent: exactly(1, 0, 1, 1),
            within: 0..=5,
        },
        Case {
            name: "slow-answers",
            when: When::Start,
            fault: |scene| scene.proxy.set(Mode::Delay(Duration::from_millis(600))),
            heal: None,
            spent: exactly(1, 0, 1, 1),
            within: 2..=5,
        },
    ])
    .await;
}
