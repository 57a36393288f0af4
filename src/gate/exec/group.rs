//! The end of a process group.

use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};
use tokio::process::Child;
use tokio::runtime::Handle;
use tokio::signal::unix::{SignalKind, signal};

use crate::gate::busy::Hold;

/// A child that leads a process group, and whatever it started in it. All are killed when this is dropped.
///
/// The number cannot have passed to strangers: Linux does not give it away while the group has a member, and after
/// that only when it has been through all others.
#[derive(Debug)]
pub(super) struct Group {
    number: Option<Pid>,
    /// Let go of when the last member is gone.
    hold: Option<Hold>,
}

impl Group {
    pub(super) fn of(leader: &Child, hold: Hold) -> Self {
        let number = leader.id().and_then(|id| i32::try_from(id).ok());
        Self {
            number: number.and_then(Pid::from_raw),
            hold: Some(hold),
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        let Some(group) = self.number else { return };
        if kill_process_group(group, Signal::KILL) == Err(Errno::SRCH) {
            return;
        }
        // Killed is not yet dead: a process that waits for a disk or a file server dies when that answers. Waiting
        // here would stop the whole agent until then.
        if let Ok(runtime) = Handle::try_current() {
            let hold = self.hold.take();
            runtime.spawn(async move {
                reap(group).await;
                drop(hold);
            });
        }
    }
}

/// Reaps the killed members that are our children, so that no zombie stays: the leader, and where the agent is PID 1
/// or a subreaper also the others, which become its children as their parents die.
///
/// Ends with the last of them. A parent's children change hands before its own death is reported
/// (Linux kernel/exit.c, `exit_notify`), so that "no such child" means that none will follow.
async fn reap(group: Pid) {
    // Listens before it looks, so that no death falls between the two.
    let Ok(mut deaths) = signal(SignalKind::child()) else {
        return;
    };
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG;
    while let Ok(reaped) = waitid(WaitId::Pgid(Some(group)), options) {
        if reaped.is_none() {
            deaths.recv().await;
        }
    }
}
