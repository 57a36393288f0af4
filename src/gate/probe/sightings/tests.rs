use std::time::Duration;

use super::*;

const NAME: &str = "ready";
/// Of a clock that starts in 1970, before it is set.
const BOOT: i64 = 100;

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_second(seconds).unwrap()
}

/// A look at this time, after a boot at that one.
fn look(boot: i64, now: i64) -> Moment {
    Moment {
        elapsed: Duration::from_secs((now - boot).try_into().unwrap()),
        clock: at(now),
        ..Moment::now()
    }
}

/// The clock is set forward by this while the process runs.
const STEP: i64 = 1_000_000_000;

/// The same.
fn uptime(boot: i64, now: i64) -> Uptime {
    Uptime {
        boot: at(boot),
        now: at(now),
    }
}

fn state(inode: u64, modified: i64, inode_changed: i64) -> FileState {
    FileState {
        inode: (1, inode),
        size: 1,
        modified: at(modified),
        inode_changed: at(inode_changed),
    }
}

/// What the looks find: the time of the boot and of the look, both by the clock at that time, and the file. Returns whether
/// the file is new at the last look.
fn is_new(looks: &[(i64, i64, Option<FileState>)]) -> bool {
    let mut sightings = Sightings::default();
    let mut is_new = false;
    for (boot, now, found) in looks {
        let name = OsString::from(NAME);
        sightings.list(look(*boot, *now), found.map(|_| &name));
        is_new = found.is_some_and(|found| {
            let stale =
                sightings.stale(NAME.as_ref(), found, uptime(*boot, *now), look(*boot, *now));
            stale.is_none()
        });
    }
    is_new
}

#[test]
fn a_file_is_new_by_its_times_or_because_it_was_seen_to_be_written() {
    let set = BOOT + STEP;
    let old = state(1, 50, 50);
    for (what, expected, looks) in [
        (
            "its times",
            true,
            vec![(BOOT, 200, Some(state(1, 150, 150)))],
        ),
        (
            "an old one",
            false,
            vec![(BOOT, 200, Some(old)), (BOOT, 201, Some(old))],
        ),
        (
            "made while the process runs, with an old time",
            true,
            vec![(BOOT, 200, None), (BOOT, 201, Some(state(1, 50, 201)))],
        ),
        (
            "the same, and the clock is set later",
            true,
            vec![
                (BOOT, 200, None),
                (BOOT, 201, Some(state(1, 201, 201))),
                (set, 300 + STEP, Some(state(1, 201, 201))),
            ],
        ),
        (
            "the same, and the clock is set before it is seen",
            true,
            vec![
                (BOOT, 200, None),
                (set, 300 + STEP, Some(state(1, 201, 201))),
            ],
        ),
        (
            "new by its times at the first look, and the clock is set later",
            true,
            vec![
                (BOOT, 200, Some(state(1, 150, 150))),
                (set, 300 + STEP, Some(state(1, 150, 150))),
            ],
        ),
        (
            "the clock was set before the process started",
            false,
            vec![(set, 300 + STEP, Some(state(1, 150, 150)))],
        ),
        (
            "made with an old time after the clock is set, and before it is seen",
            true,
            vec![
                (BOOT, 200, None),
                (set, 300 + STEP, Some(state(1, 50, 250 + STEP))),
            ],
        ),
        (
            "the same, and the clock is set back",
            true,
            vec![
                (set, 200 + STEP, None),
                (BOOT, 300, Some(state(1, 50, 250))),
            ],
        ),
        (
            "written in place, with an old time",
            true,
            vec![(BOOT, 200, Some(old)), (BOOT, 201, Some(state(1, 60, 201)))],
        ),
        (
            "replaced by a rename",
            true,
            vec![(BOOT, 200, Some(old)), (BOOT, 201, Some(state(2, 60, 201)))],
        ),
        (
            "its owner changed",
            false,
            vec![(BOOT, 200, Some(old)), (BOOT, 201, Some(state(1, 50, 201)))],
        ),
        (
            "a file system with coarse times",
            true,
            vec![(BOOT, 201, None), (BOOT, 201, Some(state(1, 50, 200)))],
        ),
        (
            "gone and made again",
            true,
            vec![
                (BOOT, 200, Some(old)),
                (BOOT, 201, None),
                (BOOT, 202, Some(state(2, 50, 202))),
            ],
        ),
    ] {
        assert_eq!(is_new(&looks), expected, "{what}");
    }
}

#[test]
fn an_old_file_that_only_becomes_visible_is_not_new() {
    let old = state(1, 50, 50);
    for (what, looks) in [
        (
            "on a file system that was mounted late",
            vec![(BOOT, 200, None), (BOOT, 201, Some(old))],
        ),
        (
            "in a directory, or behind a link, that was replaced",
            vec![
                (BOOT, 200, Some(state(1, 150, 150))),
                (BOOT, 201, Some(state(2, 50, 50))),
            ],
        ),
        (
            "of an earlier boot, whose clock was ahead of this one",
            vec![
                (BOOT, 200, None),
                (BOOT, 201, Some(state(1, 90_000, 90_000))),
            ],
        ),
        (
            "of an earlier boot, while the clock is set",
            vec![
                (BOOT, 200, None),
                (BOOT + STEP, 201 + STEP, Some(state(1, STEP / 2, STEP / 2))),
            ],
        ),
        (
            "gone, and an old one is there again",
            vec![
                (BOOT, 200, Some(state(1, 150, 150))),
                (BOOT, 201, None),
                (BOOT, 202, Some(old)),
            ],
        ),
    ] {
        assert!(!is_new(&looks), "{what}");
    }
}

#[test]
fn a_file_that_is_listed_but_not_looked_at_yet_is_known_to_be_there() {
    let mut sightings = Sightings::default();
    let names = ["a", "b"].map(OsString::from);
    sightings.list(look(BOOT, 200), [&names[0]]);
    sightings.list(look(BOOT, 300), &names);
    sightings.list(look(BOOT, 400), &names);
    let mut stale = |name: &OsString, changed| {
        let state = state(1, 50, changed);
        sightings.stale(name, state, uptime(BOOT, 400), look(BOOT, 400))
    };
    assert!(
        stale(&names[0], 150).is_some(),
        "there since the first look"
    );
    assert_eq!(
        stale(&names[1], 250),
        None,
        "came between the first two looks"
    );
}

#[test]
fn the_reason_has_both_times() {
    let mut sightings = Sightings::default();
    let mut reason = |modified| {
        let state = state(1, modified, 50);
        sightings
            .stale(NAME.as_ref(), state, uptime(BOOT, 200), look(BOOT, 200))
            .unwrap()
    };
    assert_eq!(
        reason(50),
        "its last write is from 1970-01-01T00:00:50Z, before the boot at 1970-01-01T00:01:40Z, and untaint has not seen it: if \
         it was after the boot, write the file again"
    );
    let mut sightings = Sightings::default();
    let future = state(1, STEP, 50);
    let reason = sightings.stale(NAME.as_ref(), future, uptime(BOOT, 200), look(BOOT, 200));
    assert_eq!(
        reason.unwrap(),
        "its last write is from 2001-09-09T01:46:40Z, which is in the future: it is now 1970-01-01T00:03:20Z, and the boot was at \
         1970-01-01T00:01:40Z, and untaint has not seen it: if it was after the boot, write the file again"
    );
}
