//! The checks that ask the node itself: one file a kind. Each has one `check`, which says what it found.

pub mod busy;
pub mod cni_config;
mod connect;
mod disk;
mod drive;
pub mod exec;
pub mod file;
pub mod grpc;
pub mod http_get;
pub mod tcp_socket;
#[cfg(test)]
pub(super) mod testing;

use std::path::Path;

use tokio::time::timeout;

use super::Outcome;
use crate::config::{Probe, ProbeHandler};
use busy::Busy;
pub use connect::Stream;

/// Asks once, within the probe's `timeoutSeconds`.
pub(super) async fn evaluate(spec: &Probe, busy: &Busy) -> Outcome {
    let limit = spec.schedule.timeout;
    let no_answer = |_| Outcome::Closed(format!("no answer within {} s", limit.as_secs_f64()));
    let answer = async {
        match &spec.handler {
            ProbeHandler::CniConfig(spec) => cni_config::check(spec, busy).await,
            ProbeHandler::File(spec) => file::check(spec, busy).await,
            ProbeHandler::HttpGet(spec) => http_get::check(spec, busy).await,
            ProbeHandler::TcpSocket(spec) => tcp_socket::check(spec, busy).await,
            ProbeHandler::Grpc(spec) => grpc::check(spec, busy).await,
            ProbeHandler::Exec(spec) => exec::check(spec, busy).await,
        }
    };
    timeout(limit, answer).await.unwrap_or_else(no_answer)
}

/// The path whose changes are worth a look before the period is over.
pub(super) fn watched(handler: &ProbeHandler) -> Option<&Path> {
    match handler {
        ProbeHandler::CniConfig(spec) => Some(&spec.dir),
        ProbeHandler::File(spec) => Some(&spec.path),
        _ => None,
    }
}
