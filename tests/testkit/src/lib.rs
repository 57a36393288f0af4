//! The library of untaint's tests and of its demo.
//!
//! - [`api`]: a stand-in for the API server, in this process, with scripted answers.
//! - [`proxy`]: a proxy that makes network faults.
//! - [`cluster`]: a real API server.
//! - [`promtool`]: Prometheus' checker of metrics and alerts.
//! - [`assets`]: programs of other projects.
//! - [`agent`]: the agent as a process.
//! - [`health`]: an endpoint for the agent to probe.
//! - [`hung`]: a file system that never answers.
//! - [`dockerfile`]: the Dockerfile.
//! - [`webhook`]: an admission webhook that a real API server asks.

pub mod agent;
pub mod api;
pub mod assets;
pub mod cluster;
pub mod config_map;
pub mod dockerfile;
pub mod health;
pub mod helm;
pub mod hung;
pub mod kubeconfig;
mod nodes;
pub mod promtool;
pub mod proxy;
pub mod skip;
mod tls;
pub mod webhook;

pub use nodes::{node, taints};

use std::path::Path;
use std::process::Command;
use std::time::Duration;

/// A CNI configuration of the network `demo`.
pub const CONFLIST: &str =
    r#"{"cniVersion": "1.0.0", "name": "demo", "plugins": [{"type": "demo"}]}"#;

/// The time after which the waiting helpers of this crate fail.
pub const DEADLINE: Duration = Duration::from_mins(1);

/// Makes a named pipe.
///
/// # Panics
///
/// If mkfifo(1) fails.
#[expect(clippy::expect_used, reason = "for tests")]
pub fn make_pipe(path: &Path) {
    let made = Command::new("mkfifo").arg(path).status();
    assert!(made.expect("mkfifo").success(), "mkfifo {}", path.display());
}
