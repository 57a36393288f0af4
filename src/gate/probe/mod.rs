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
use crate::config::{Check, Probe};
use busy::Busy;
pub use connect::Stream;

/// Asks once, within the probe's `timeoutSeconds`.
pub(super) async fn evaluate(spec: &Probe, busy: &Busy) -> Outcome {
    let limit = spec.schedule.timeout;
    let no_answer = |_| Outcome::Closed(format!("no answer within {} s", limit.as_secs_f64()));
    let answer = async {
        match &spec.check {
            Check::CniConfig(spec) => cni_config::check(spec, busy).await,
            Check::File(spec) => file::check(spec, busy).await,
            Check::HttpGet(spec) => http_get::check(spec, busy).await,
            Check::TcpSocket(spec) => tcp_socket::check(spec, busy).await,
            Check::Grpc(spec) => grpc::check(spec, busy).await,
            Check::Exec(spec) => exec::check(spec, busy).await,
        }
    };
    timeout(limit, answer).await.unwrap_or_else(no_answer)
}

/// The path whose changes are worth a look before the period is over.
pub(super) fn watched(check: &Check) -> Option<&Path> {
    match check {
        Check::CniConfig(spec) => Some(&spec.dir),
        Check::File(spec) => Some(&spec.path),
        _ => None,
    }
}
