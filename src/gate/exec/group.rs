//! The processes of one check, and their end.

use std::io;
use std::process::ExitStatus;

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::process::{Child, Command};
use tokio::runtime::Handle;
use tokio::signal::unix::{SignalKind, signal};

use super::orphans::{Claim, Mark, is_reaped, sweep};
use crate::gate::busy::Hold;

/// A child that leads a process group, and whatever comes of it. All are killed when this is dropped: the group at once,
/// and those that left it as they lose their parents.
///
/// The number of the group cannot have passed to strangers: Linux does not give it away while the group has a member,
/// and after that only when it has been through all others.
#[derive(Debug)]
pub(super) struct Group {
    leader: Child,
    number: Option<Pid>,
    /// Let go of when the end has come.
    claim: Option<Claim>,
    /// Let go of when the last process is gone.
    hold: Option<Hold>,
}

impl Group {
    pub(super) fn start(command: &mut Command, hold: Hold) -> io::Result<Self> {
        let claim = Claim::stake()?;
        let leader = command.process_group(0).spawn()?;
        let number = leader.id().and_then(|id| i32::try_from(id).ok());
        let number = number.and_then(Pid::from_raw);
        claim.led_by(number);
        Ok(Self {
            leader,
            number,
            claim: Some(claim),
            hold: Some(hold),
        })
    }

    pub(super) async fn wait(&mut self) -> io::Result<ExitStatus> {
        self.leader.wait().await
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        if let Some(number) = self.number {
            let _ = kill_process_group(number, Signal::KILL);
        }
        // It may have joined another group. Nothing happens if it has been waited for.
        let _ = self.leader.start_kill();
        let Some(claim) = self.claim.take() else {
            return;
        };
        let mut rest = Rest {
            leader: self.leader.id().and(self.number),
            mark: claim.mark(),
        };
        drop(claim);
        if rest.is_gone() {
            return;
        }
        // Killed is not yet dead: a process that waits for a disk or a file server dies when that answers. Waiting
        // here would stop the whole agent until then.
        if let Ok(runtime) = Handle::try_current() {
            let hold = self.hold.take();
            runtime.spawn(async move {
                rest.gone().await;
                drop(hold);
            });
        }
    }
}

/// What has been killed.
struct Rest {
    leader: Option<Pid>,
    mark: Mark,
}

impl Rest {
    /// Returns when the last of it has been reaped.
    async fn gone(&mut self) {
        // Listens before it looks, so that no death falls between the two.
        let Ok(mut deaths) = signal(SignalKind::child()) else {
            return;
        };
        while !self.is_gone() {
            deaths.recv().await;
        }
    }

    fn is_gone(&mut self) -> bool {
        // Not asked for again once it is gone: its number may be another child's by then. And before the others: what
        // it leaves is to be among them.
        self.leader = self.leader.filter(|leader| !is_reaped(*leader));
        let others = sweep();
        self.leader.is_none() && !others.contains(&self.mark)
    }
}
