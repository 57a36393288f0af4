//! What leaves the process group of its check.

use std::collections::BTreeSet;
use std::thread;

use futures_util::future::join_all;
use rustix::process::{Pid, test_kill_process_group};

use super::*;
use crate::gate::probe::exec::orphans::start_alone;

/// What `$!` of each is does not die with the group.
const ESCAPES: [&str; 7] = [
    "setsid sleep 1000 &",
    "setsid env -i sleep 1000 &",
    "setsid nohup sleep 1000 &",
    "timeout 1000 sh -c 'sleep 1000; true' &",
    "setsid sh -c 'trap \"\" HUP INT TERM; sleep 1000; true' &",
    "setsid sh -c 'kill -STOP $$' & until grep -q '^State:.T' /proc/$!/status; do :; done;",
    "set -- \"$@\" $(setsid sh -c 'sleep 1000 >/dev/null 2>&1 & echo $!'); sleep 1000 &",
];

#[tokio::test]
async fn what_left_the_group_is_ended_with_the_check() {
    for escape in ESCAPES {
        let outcome = shell(&format!("{escape} echo $1 $!; exit 1")).await;
        let (_, pids) = outcome.message().split_once("code 1: ").unwrap();
        for pid in pids.split(' ') {
            gone(pid.parse().unwrap()).await;
        }
    }
}

#[tokio::test]
async fn what_left_the_group_is_ended_at_the_time_out() {
    for escape in ESCAPES {
        let script = format!("{escape} echo $3 $! >$1; mv $1 $2; wait");
        for pid in dropped_after(&script).await {
            gone(pid).await;
        }
    }
}

/// Killed one after the other, those that lose their parent could still start others, faster than these can be killed.
#[tokio::test]
async fn the_processes_of_one_group_are_killed_together() {
    for _ in 0..5 {
        assert!(!an_orphan_acts().await);
    }
}

/// Whether a member of a group that is killed sees its parent die.
async fn an_orphan_acts() -> bool {
    let dir = TempDir::new().unwrap();
    let path = |name| dir.path().join(name);
    let (ready, orphaned) = (path("ready"), path("orphaned"));
    let family = "
        pipe(R, W);
        for (1..20) { next if fork; close W; sysread(R, $_, 1); open(F, q(>), $ARGV[1]); sleep 1000 }
        open(F, q(>), $ARGV[0]);
        sleep 1000";
    let script = format!(
        "timeout 1000 perl -e '{family}' $0 $1 & until test -e $0; do sleep 0.01; done; echo $!; exit 1"
    );
    let arguments = [&ready, &orphaned].map(|path| path.to_str().unwrap());
    let command = [&["/bin/sh", "-c", &script][..], &arguments].concat();
    let group = Pid::from_raw(printed_pid(&outcome(&command).await)).unwrap();
    soon(async {
        while test_kill_process_group(group).is_ok() {
            // There is no event for this; `soon` is the deadline.
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    })
    .await;
    orphaned.exists()
}

/// A kill of that group would kill this process.
#[tokio::test]
async fn a_program_that_joins_the_agents_group_is_ended_alone() {
    let join = "perl -e 'setpgrp(0, getpgrp(getppid())) or die; if (my $child = fork) { print $child; exit 1 } sleep 1000'";
    let command = format!("exec {join}");
    gone(printed_pid(&shell(&command).await)).await;

    let wait = "exec perl -e 'setpgrp(0, getpgrp(getppid())) or die; open F, qq(>$ARGV[0]); print F $$; close F; rename $ARGV[0], $ARGV[1]; sleep 1000' $1 $2";
    gone(dropped_after(wait).await[0]).await;
}

#[tokio::test]
async fn a_program_that_joins_the_group_of_another_check_is_ended_alone() {
    let dir = TempDir::new().unwrap();
    let path = |name| dir.path().join(name).to_str().unwrap().to_owned();
    let (group, done) = (path("group"), path("done"));
    let script = "echo $$ >$0.new; mv $0.new $0; until test -e $1; do sleep 0.01; done";
    let spec = exec(&["/bin/sh", "-c", script, &group, &done]);
    let lock = ProbeLock::default();
    let join = "exec perl -e 'setpgrp(0, $ARGV[0]) or die; if (my $child = fork) { print $child; exit 1 } sleep 1000'";
    let joining = async {
        let until = "until test -e $0; do sleep 0.01; done";
        let command = format!("{until}; {join} $(cat $0)");
        let outcome = outcome(&["/bin/sh", "-c", &command, &group]).await;
        gone(printed_pid(&outcome)).await;
        fs::write(&done, "").unwrap();
    };
    let (outcome, ()) = soon(async { tokio::join!(check(&spec, &lock), joining) }).await;
    assert_eq!(outcome, Ok("exit code 0".into()));
}

#[tokio::test]
async fn programs_that_start_at_the_same_time_have_marks_of_their_own() {
    const PROGRAMS: usize = 30;
    let mark = || shell("grep '^Max file locks' /proc/self/limits; exit 1");
    let seen = join_all((0..PROGRAMS).map(|_| mark())).await;
    let marks: BTreeSet<_> = seen.iter().map(Outcome::message).collect();
    assert_eq!(marks.len(), PROGRAMS, "{marks:#?}");
}

#[tokio::test]
async fn the_orphans_of_a_check_that_runs_live_on_when_other_checks_end() {
    let dir = TempDir::new().unwrap();
    let path = |name| dir.path().join(name).to_str().unwrap().to_owned();
    let (pid, others) = (path("pid"), path("others"));
    let script = "
        daemon=$(setsid sh -c 'sleep 1000 >/dev/null 2>&1 & echo $!'); echo $daemon >$0
        until test -e $1; do sleep 0.01; done; kill -0 $daemon";
    let spec = exec(&["/bin/sh", "-c", script, &pid, &others]);
    let lock = ProbeLock::default();
    let others = async {
        while fs::read(&pid).map_or(0, |pid| pid.len()) == 0 {
            // There is no event for this; `soon` is the deadline.
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        for _ in 0..3 {
            assert!(shell("setsid sleep 1000 &").await.is_open());
        }
        fs::write(&others, "").unwrap();
    };
    let (outcome, ()) = soon(async { tokio::join!(check(&spec, &lock), others) }).await;
    assert_eq!(outcome, Ok("exit code 0".into()));
    let daemon = fs::read_to_string(&pid).unwrap();
    gone(daemon.trim().parse().unwrap()).await;
}

/// Starts programs at the same time, and returns the number of their marks.
async fn marks_of(starts: usize) -> usize {
    let mark = || shell("grep '^Max file locks' /proc/self/limits; exit 1");
    let outcomes = join_all((0..starts).map(|_| mark())).await;
    let marks: BTreeSet<_> = outcomes.iter().map(Outcome::message).collect();
    marks.len()
}

#[tokio::test]
async fn checks_that_start_at_the_same_time_have_a_mark_each_while_another_waits_for_its_last_run()
{
    let lock = ProbeLock::default();
    let _last_run = lock.acquire().await;
    let waiting = exec(&["/bin/true"]);
    let (_, marks) = tokio::join!(check(&waiting, &lock), marks_of(50));
    assert_eq!(marks, 50);
}

#[tokio::test]
async fn checks_that_start_at_the_same_time_have_a_mark_each_while_another_hangs_in_its_start() {
    let (release, hang) = std::sync::mpsc::channel::<()>();
    let (started, start) = std::sync::mpsc::channel();
    let other = thread::spawn(move || {
        start_alone(|| {
            started.send(()).unwrap();
            hang.recv()
        })
    });
    start.recv().unwrap();
    assert_eq!(soon(marks_of(50)).await, 50);
    drop(release);
    assert!(other.join().unwrap().is_err());
}
