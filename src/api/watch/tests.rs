use tokio::time::sleep;

use super::*;

/// When, in a pause, a taint begins to wait only for the API server.
const LATER: Duration = Duration::from_millis(100);

/// The first wait that is longer than `limit`, after watches that failed while no taint waited.
fn wait_above(pace: &mut Pace, limit: Duration) -> Wait {
    loop {
        pace.begin();
        let wait = pace.wait(Duration::ZERO);
        if wait.time > limit {
            return wait;
        }
    }
}

/// How long the pause is.
async fn pause(pace: &mut Pace, urgent: &watch::Sender<bool>, wait: Wait) -> Duration {
    urgent.send_replace(false);
    let begun = Instant::now();
    let turn = async {
        sleep(LATER).await;
        urgent.send_replace(true);
    };
    let paused = async {
        pace.pause(wait).await;
        begun.elapsed()
    };
    let paused = tokio::join!(paused, turn).0;
    urgent.send_replace(false);
    paused
}

/// Timers have milliseconds.
fn assert_about(paused: Duration, expected: Duration) {
    let difference = paused.abs_diff(expected);
    assert!(
        difference < Duration::from_millis(3),
        "{paused:?}, not {expected:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_wait_is_cut_short_once_in_an_outage_and_to_the_cap_after_that() {
    let (urgent, is_urgent) = watch::channel(false);
    let mut pace = Pace::new(is_urgent);
    let wait = wait_above(&mut pace, SHORT_WAIT);
    assert_about(pause(&mut pace, &urgent, wait).await, LATER);
    let wait = wait_above(&mut pace, URGENT_BACKOFF_CAP + LATER);
    let paused = pause(&mut pace, &urgent, wait).await;
    assert_about(paused, LATER + URGENT_BACKOFF_CAP);
    pace.reset();
    let wait = wait_above(&mut pace, SHORT_WAIT);
    assert_about(pause(&mut pace, &urgent, wait).await, LATER);
}

#[tokio::test(start_paused = true)]
async fn a_short_wait_and_one_that_the_server_asks_for_are_not_cut_short() {
    let (urgent, is_urgent) = watch::channel(false);
    let mut pace = Pace::new(is_urgent);
    pace.begin();
    let short = pace.wait(Duration::ZERO);
    assert!(short.time > LATER && short.time <= SHORT_WAIT);
    let asked = pace.wait(Duration::from_secs(7));
    for wait in [short, asked] {
        let expected = wait.time;
        assert_about(pause(&mut pace, &urgent, wait).await, expected);
    }
}

#[tokio::test(start_paused = true)]
async fn a_taint_that_comes_to_wait_during_a_try_starts_the_backoff_afresh_once() {
    let (urgent, is_urgent) = watch::channel(false);
    let mut pace = Pace::new(is_urgent);
    for is_short in [true, false] {
        wait_above(&mut pace, URGENT_BACKOFF_CAP);
        pace.begin();
        urgent.send_replace(true);
        let wait = pace.wait(Duration::ZERO);
        assert_eq!(wait.time <= SHORT_WAIT, is_short, "{:?}", wait.time);
        urgent.send_replace(false);
    }
}
