//! The commands for nodes, and for containers on them. They need Linux.

mod check;
mod flags;
mod install;
mod late;
mod run;
mod wait;

use super::{Failure, deadline_in, finish_by, print, read_configuration, run_blocking_on};
use crate::cli::{Exit, NodeCommand};
pub(super) use crate::gate::probe::exec::{reap_orphans, wait_for_orphans};

pub(super) async fn dispatch(command: NodeCommand) -> Result<Exit, Failure> {
    match command {
        // This future is large.
        NodeCommand::Run(args) => Box::pin(run::run(args)).await,
        NodeCommand::Wait(args) => wait::wait(args).await,
        NodeCommand::Check(args) => check::check(args).await,
        NodeCommand::Install { directory } => install::install(directory).await,
    }
}
