//! The place of `node.rs` on systems that are no nodes.

use std::future::pending;
use std::io;

use super::Failure;
use crate::cli::{Exit, NodeCommand};

pub(super) async fn dispatch(command: NodeCommand) -> Result<Exit, Failure> {
    let command = match command {
        NodeCommand::Run(_) => "run",
        NodeCommand::Wait(_) => "wait",
        NodeCommand::Check(_) => "check",
        NodeCommand::Install { .. } => "install",
    };
    Err(Failure::Usage(format!(
        "untaint {command} is for Linux, because it runs on nodes; on this system, use config and manifests"
    )))
}

/// No command here starts a process.
pub(super) async fn reap_orphans() -> io::Error {
    pending().await
}

pub(super) async fn wait_for_orphans() {}
