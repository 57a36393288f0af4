//! The processes of one check, and how they end.

use std::io;
use std::process::ExitStatus;

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::process::{Child, Command};
use tokio::runtime::Handle;
use tokio::signal::unix::{SignalKind, signal};

use super::orphans::{Claim, is_reaped, sweep};
use crate::gate::probe::lock::ProbeLockGuard;

/// A child that leads a process group, and all its descendants. Dropping this kills the group at once, and those that left
/// it as they lose their parents.
///
/// The number of the group still means this group: Linux does not give it to others while the group has a member, and
/// after that only when it has used all other numbers.
#[derive(Debug)]
pub(super) struct ProcessGroup {
    leader: Child,
    rest: Option<Rest>,
}

impl ProcessGroup {
    pub(super) fn start(command: &mut Command, guard: ProbeLockGuard) -> io::Result<Self> {
        let claim = Claim::begin()?;
        let leader = command.process_group(0).spawn()?;
        let number = leader.id().and_then(|id| Pid::from_raw(id.cast_signed()));
        number.inspect(|number| claim.set_leader(*number));
        let rest = Some(Rest {
            leader: number,
            claim,
            _guard: guard,
        });
        Ok(Self { leader, rest })
    }

    pub(super) async fn wait(&mut self) -> io::Result<ExitStatus> {
        self.leader.wait().await
    }
}

impl Drop for ProcessGroup {
    fn drop(&mut self) {
        let Some(mut rest) = self.rest.take() else {
            return;
        };
        if let Some(number) = rest.leader {
            let _ = kill_process_group(number, Signal::KILL);
        }
        // It may have joined another group. Refused if it has been waited for.
        let _ = self.leader.start_kill();
        if self.leader.id().is_none() {
            rest.leader = None;
        }
        rest.claim.end();
        if rest.is_gone() {
            return;
        }
        // A process that waits for a disk or a file server only dies when that answers. Waiting for it here would stop the
        // whole agent.
        if let Ok(runtime) = Handle::try_current() {
            runtime.spawn(rest.gone());
        }
    }
}

/// What remains until the last process of a check is gone.
#[derive(Debug)]
struct Rest {
    /// Until it has been reaped.
    leader: Option<Pid>,
    claim: Claim,
    _guard: ProbeLockGuard,
}

impl Rest {
    /// Returns when the last of it has been reaped.
    async fn gone(mut self) {
        // Listens before it checks, so that it misses no death.
        let Ok(mut deaths) = signal(SignalKind::child()) else {
            return;
        };
        while !self.is_gone() {
            deaths.recv().await;
        }
    }

    fn is_gone(&mut self) -> bool {
        // The leader first, because what it leaves comes here with its death; and only until it is gone, because another
        // child may get its number.
        self.leader = self.leader.filter(|leader| !is_reaped(*leader));
        let others = sweep();
        self.leader.is_none() && !others.contains(&self.claim.mark())
    }
}
