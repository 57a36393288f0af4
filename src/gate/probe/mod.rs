//! Gates that ask the node itself. Each kind has one file. Its `check` returns what it found, or the reason why the gate
//! is closed.

pub mod cni_config;
mod connect;
mod disk;
mod drive;
pub(crate) mod exec;
mod file;
pub mod grpc;
pub mod http_get;
pub mod lock;
mod sightings;
mod tcp_socket;
#[cfg(test)]
pub(super) mod testing;

use tokio::time::timeout;

use super::Outcome;
use crate::config::{Probe, ProbeHandler};
use crate::fs_watch::FsWatch;
pub use connect::Stream;
use lock::ProbeLock;

/// Evaluates a probe once, within its `timeoutSeconds`. `node_name`: the name of the agent's own Node.
pub(super) async fn evaluate(spec: &Probe, node_name: Option<&str>, lock: &ProbeLock) -> Outcome {
    let limit = spec.schedule.timeout;
    let no_answer = |_| Err(format!("no answer within {} s", limit.as_secs_f64()));
    let answer = async {
        match &spec.handler {
            ProbeHandler::CniConfig(spec) => cni_config::check(spec, lock).await,
            ProbeHandler::File(spec) => file::check(spec, lock).await,
            ProbeHandler::HttpGet(spec) => http_get::check(spec, lock).await,
            ProbeHandler::TcpSocket(spec) => tcp_socket::check(spec, lock).await,
            ProbeHandler::Grpc(spec) => grpc::check(spec, lock).await,
            ProbeHandler::Exec(spec) => exec::check(spec, node_name, lock).await,
        }
    };
    // On the heap while it runs: it is large, and its caller lives long.
    let answer = timeout(limit, Box::pin(answer)).await;
    answer.unwrap_or_else(no_answer).into()
}

/// The watch of what the probe reads: its changes are evaluated before the period is over.
pub(super) fn watch(handler: &ProbeHandler) -> Option<FsWatch> {
    match handler {
        // The configuration files may have others in a directory beside them.
        ProbeHandler::CniConfig(spec) => Some(FsWatch::with_directories(&spec.dir)),
        ProbeHandler::File(spec) => Some(FsWatch::new(&spec.path)),
        _ => None,
    }
}
