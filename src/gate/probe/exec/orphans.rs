//! The processes that come to this one when they lose their parent.
//!
//! A program that changes its process group or session (`timeout`, `setsid`, a daemon) is not killed with the group of
//! its check. It comes here when its parent dies, because this process is PID 1 or a subreaper. So do processes that no
//! check started: what `kubectl exec` leaves behind, where this is PID 1; or the children of a shell that became this
//! program. All of them are reaped. Only those with the [`Mark`] of a check that has ended are killed.

use std::fs;
use std::io;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, ThreadId};
use std::time::{Duration, Instant};

use rustix::process::{
    Pid, Resource, Rlimit, Signal, WaitId, WaitIdOptions, getpid, getrlimit, kill_process,
    kill_process_group, set_child_subreaper, setrlimit, waitid,
};
use tokio::signal::unix::{SignalKind, signal};
use tokio::time::{sleep, timeout};

/// How long the end of this process waits for the processes of checks. They are usually gone as soon as they are killed.
const LAST_WAIT: Duration = Duration::from_millis(500);

/// A start that takes longer hangs, in execve(2) and so with its own mark: other starts need not wait for it.
const LONGEST_START: Duration = Duration::from_millis(500);

/// Marks the processes of one check: their soft limit of file locks.
///
/// Linux has not enforced this limit since 2.4.25 (getrlimit(2)), but every process inherits it, even if its group,
/// session, parent or environment changes. An environment variable would be lost with `env -i`, in programs that write
/// their status over it, and for a moment in each execve(2); and reading it can hang.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Mark(u64);

/// The upper half of each mark, which no real limit has ("unta").
const MARKED: u64 = 0x756e_7461;

impl Mark {
    fn next() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        Self(MARKED << 32 | u64::from(NEXT.fetch_add(1, Ordering::Relaxed)))
    }

    /// Every process that this one starts from now on has this mark.
    fn set_for_children(self) {
        let limit = Rlimit {
            current: Some(self.0),
            ..getrlimit(Resource::Locks)
        };
        // Refused only where the hard limit was lowered. The groups are killed all the same.
        let _ = setrlimit(Resource::Locks, limit);
    }

    /// Reads it from a file that never blocks and that every process may read.
    fn of(process: Pid) -> Option<Self> {
        let limits = fs::read_to_string(format!("/proc/{process}/limits")).ok()?;
        let locks = limits
            .lines()
            .find_map(|line| line.strip_prefix("Max file locks"))?;
        let soft: u64 = locks.split_whitespace().next()?.parse().ok()?;
        (soft >> 32 == MARKED).then_some(Self(soft))
    }
}

/// A check that still has a process.
#[derive(Debug)]
struct Running {
    mark: Mark,
    /// The child of this process that the check waits for; unknown while it is being started.
    leader: Option<Pid>,
    /// Whether all processes with the mark must be killed.
    ended: bool,
}

fn running() -> MutexGuard<'static, Vec<Running>> {
    static RUNNING: Mutex<Vec<Running>> = Mutex::new(Vec::new());
    RUNNING.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Keeps the processes of one check alive until [`Claim::end`]. Dropped when the last process is gone.
#[derive(Debug)]
pub(super) struct Claim(Mark);

impl Claim {
    /// For the program that is started next; see [`start_alone`].
    pub(super) fn begin() -> io::Result<Self> {
        set_child_subreaper(Some(getpid()))?;
        let mark = Mark::next();
        running().push(Running {
            mark,
            leader: None,
            ended: false,
        });
        mark.set_for_children();
        Ok(Self(mark))
    }

    /// The check waits for the child `leader` and so reaps it.
    pub(super) fn set_leader(&self, leader: Pid) {
        self.change(|check| check.leader = Some(leader));
    }

    /// The check no longer waits for the leader.
    pub(super) fn end(&self) {
        self.change(|check| check.ended = true);
    }

    pub(super) fn mark(&self) -> Mark {
        self.0
    }

    fn change(&self, change: impl Fn(&mut Running)) {
        let mut running = running();
        let mine = running.iter_mut().filter(|check| check.mark == self.0);
        mine.for_each(change);
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        running().retain(|check| check.mark != self.0);
    }
}

/// Starts a program, on the thread of the caller, while no other check starts one: the next process that starts gets the
/// mark. May wait for [`LONGEST_START`].
pub(super) fn start_alone<T>(start: impl FnOnce() -> T) -> T {
    static STARTING: Mutex<Option<(ThreadId, Instant)>> = Mutex::new(None);
    static STARTED: Condvar = Condvar::new();
    let starting = || STARTING.lock().unwrap_or_else(PoisonError::into_inner);
    let this = thread::current().id();
    let mut turn = starting();
    while let Some((_, since)) = *turn
        && let Some(rest) = LONGEST_START.checked_sub(since.elapsed())
    {
        let waited = STARTED.wait_timeout(turn, rest);
        turn = waited.unwrap_or_else(PoisonError::into_inner).0;
    }
    *turn = Some((this, Instant::now()));
    drop(turn);
    let started = start();
    // Unless another start has the turn now.
    if starting().take_if(|(thread, _)| *thread == this).is_some() {
        STARTED.notify_one();
    }
    started
}

/// Reaps the dead and kills the processes of checks that have ended. Returns the marks of those that it killed.
///
/// Their children come here as they die, so this must be repeated at each death. A parent's children come here before its
/// own death is reported (Linux kernel/exit.c, `exit_notify`).
pub(super) fn sweep() -> Vec<Mark> {
    // Held to the end. Otherwise another sweep could reap a process that this one is about to kill, and the kernel could
    // reuse its number.
    let running = running();
    let awaited = || running.iter().filter(|check| !check.ended);
    let is_ended = |mark| awaited().all(|check| check.mark != mark);
    let is_awaited = |child| awaited().any(|check| check.leader == Some(child));
    let left = adopted().into_iter().filter_map(|child| {
        if is_awaited(child) || is_reaped(child) {
            return None;
        }
        let mark = Mark::of(child).filter(|mark| is_ended(*mark))?;
        kill(child, is_ended);
        Some(mark)
    });
    left.collect()
}

/// The children of the main thread: all that came here, and those leaders whose thread has ended. A child that is just
/// being started belongs to the thread that starts it.
fn adopted() -> Vec<Pid> {
    // By the thread's number in this PID namespace. A `/proc` of another namespace has other numbers.
    let children = fs::read_to_string(format!("/proc/self/task/{}/children", getpid()));
    let children = children.unwrap_or_default();
    let numbers = children.split_whitespace();
    numbers
        .filter_map(|number| Pid::from_raw(number.parse().ok()?))
        .collect()
}

/// Whether the child is gone. Reaps it if it is dead.
pub(super) fn is_reaped(child: Pid) -> bool {
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG;
    !matches!(waitid(WaitId::Pid(child), options), Ok(None))
}

/// Kills it together with its group, because a fork bomb is faster than single kills; but alone if the group is not that of
/// its check.
fn kill(child: Pid, is_ended: impl Fn(Mark) -> bool) {
    let is_left = |group: Pid| {
        let founder_is_gone = !fs::exists(format!("/proc/{group}")).unwrap_or(true);
        founder_is_gone || Mark::of(group).is_some_and(is_ended)
    };
    let group = group_of(&child.to_string());
    let group = group.filter(|group| Some(*group) != group_of("self") && is_left(*group));
    // Refused only if it has changed its user. Then it lives until it ends by itself.
    let _ = match group {
        Some(group) => kill_process_group(group, Signal::KILL),
        None => kill_process(child, Signal::KILL),
    };
}

/// The process group, from `/proc/PID/stat`: a name in parentheses, the state, the parent, the group. `None` where it
/// is one of another PID namespace.
fn group_of(process: &str) -> Option<Pid> {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    let (_, fields) = stat.rsplit_once(')')?;
    Pid::from_raw(fields.split_whitespace().nth(2)?.parse().ok()?)
}

/// Sweeps at each death of a child, forever: processes that lose their parent while a check runs, or that no check
/// started, must not stay zombies.
pub(crate) async fn reap_orphans() -> io::Error {
    // Listens before it sweeps, so that it misses no death.
    let mut deaths = match signal(SignalKind::child()) {
        Ok(deaths) => deaths,
        Err(error) => return error,
    };
    loop {
        sweep();
        deaths.recv().await;
    }
}

/// Waits for a moment until all processes of checks are gone. The checks have all been dropped, and a process that is not
/// gone would outlive this one.
pub(crate) async fn wait_for_orphans() {
    let gone = async {
        while !(running().is_empty() && sweep().is_empty()) {
            // There is no signal for the end of a check that is still being started.
            sleep(Duration::from_millis(5)).await;
        }
    };
    let _ = timeout(LAST_WAIT, gone).await;
}
