//! Connections that cannot be opened, break, fall silent or are slow.

use std::time::Duration;

use testkit::api::{Answer, Verb};
use testkit::proxy::{Direction, Mode};

use super::{Case, REQUEST_FAILED, Scene, Spent, WATCH_FAILED, When, exactly, survive};

fn proxy(mode: Mode) -> impl FnOnce(&Scene) + Send + 'static {
    move |scene| scene.proxy.set(mode)
}

fn pass(scene: &Scene) {
    scene.proxy.set(Mode::Pass);
}

fn patch_gets(answer: Answer) -> impl FnOnce(&Scene) + Send + 'static {
    move |scene| scene.middle.respond_next(Verb::Patch, 1, answer)
}

/// The connection is cut after so many bytes of the patch or of its answer.
fn cut((name, direction, bytes): (&'static str, Direction, usize)) -> Case {
    let spent = Spent {
        // The proxy also cuts handshakes, which lead to no request.
        watches: 2..=2,
        gets: 0..=1,
        patches: 1..=2,
        connections: 2..=8,
    };
    let fault = proxy(Mode::Cut(direction, bytes));
    Case::new(name, When::Watching, fault, spent, 0..=5).healed_after(WATCH_FAILED, pass)
}

/// The answer to the patch ends the connection. The agent sends so many patches in all.
fn broken((name, answer, patches): (&'static str, Answer, usize)) -> Case {
    // The watch and the removal can both open a connection; the agent keeps one of them.
    let spent = Spent {
        connections: 2..=3,
        ..exactly(2, 1, patches, 0)
    };
    let fault = patch_gets(answer);
    Case::new(name, When::Watching, fault, spent, 0..=1)
}

/// The patch has no answer until the agent gives up.
fn silence((name, mode): (&'static str, Mode)) -> Case {
    // What was sent in the meantime arrives late. The agent reads the Node before it sends anything else.
    let spent = Spent {
        watches: 1..=2,
        gets: 1..=2,
        patches: 1..=2,
        connections: 2..=3,
    };
    Case::new(name, When::Watching, proxy(mode), spent, 0..=5).healed_after(REQUEST_FAILED, pass)
}

/// The agent cannot reach the server at the start.
fn away((name, mode): (&'static str, Mode)) -> Case {
    let spent = Spent {
        connections: 2..=4,
        ..exactly(1, 0, 1, 0)
    };
    Case::new(name, When::Start, proxy(mode), spent, 0..=5).healed_after(WATCH_FAILED, pass)
}

#[tokio::test]
async fn a_connection_that_breaks_at_any_stage_of_a_removal_is_replaced_and_the_node_read_first() {
    let reset = Case::new(
        "reset-before-the-request",
        When::Watching,
        |scene| scene.proxy.reset_connections(),
        // The gates can open before or after the agent notices the reset. The watch and the removal can both open a
        // connection; the agent keeps one of them.
        Spent {
            patches: 1..=2,
            gets: 0..=1,
            connections: 2..=3,
            ..exactly(2, 0, 0, 0)
        },
        0..=1,
    );
    let breaks = [
        ("reset-before-it-is-applied", Answer::Reset, 2),
        ("reset-after-it-is-applied", Answer::ApplyAndReset, 1),
        ("goaway-before-it-is-applied", Answer::GoAway, 2),
        ("goaway-after-it-is-applied", Answer::ApplyAndGoAway, 1),
    ];
    let (to_server, to_client) = (Direction::ToServer, Direction::ToClient);
    let cuts = [
        ("cut-in-the-first-bytes-of-the-request", to_server, 1),
        ("cut-in-the-middle-of-the-request", to_server, 200),
        ("cut-in-the-first-bytes-of-the-answer", to_client, 1),
        ("cut-in-the-middle-of-the-answer", to_client, 300),
    ];
    let cases = breaks.map(broken).into_iter().chain(cuts.map(cut));
    survive(cases.chain([reset])).await;
}

#[tokio::test]
async fn a_removal_that_has_no_answer_is_looked_after_on_another_connection() {
    let hangs = [
        Case::new(
            "silence-before-it-is-applied",
            When::Watching,
            patch_gets(Answer::Hang),
            exactly(1, 1, 2, 2),
            5..=6,
        ),
        Case::new(
            "silence-after-it-is-applied",
            When::Watching,
            patch_gets(Answer::ApplyAndHang),
            exactly(1, 1, 1, 2),
            0..=1,
        ),
    ];
    let silences = [
        ("black-hole-around-the-removal", Mode::BlackHole),
        (
            "nothing-reaches-the-server",
            Mode::Swallow(Direction::ToServer),
        ),
        (
            "nothing-reaches-the-agent",
            Mode::Swallow(Direction::ToClient),
        ),
        ("ten-bytes-a-second", Mode::Throttle(10)),
    ];
    survive(hangs.into_iter().chain(silences.map(silence))).await;
}

#[tokio::test]
async fn a_server_that_is_away_at_the_start_or_slow_is_waited_for() {
    let faults = [
        ("refused-at-start", Mode::Refuse),
        ("black-hole-at-start", Mode::BlackHole),
        (
            "nothing-reaches-the-server-at-start",
            Mode::Swallow(Direction::ToServer),
        ),
        (
            "nothing-reaches-the-agent-at-start",
            Mode::Swallow(Direction::ToClient),
        ),
        ("ten-bytes-a-second-at-start", Mode::Throttle(10)),
    ];
    let late = Mode::Delay(Duration::from_millis(600));
    let slow = [
        ("a-narrow-line", Mode::Throttle(4000), 0..=5),
        ("slow-answers", late, 2..=5),
    ];
    let slow = slow.map(|(name, mode, within)| {
        Case::new(name, When::Start, proxy(mode), exactly(1, 0, 1, 1), within)
    });
    survive(faults.map(away).into_iter().chain(slow)).await;
}
