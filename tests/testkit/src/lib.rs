//! What untaint's tests and its demo run against.
//!
//! - [`api`]: a stand-in for the API server, in this process, with scripted answers.
//! - [`proxy`]: network faults before any server.
//! - [`cluster`]: the real API server.
//! - [`promtool`]: the judge of metrics.
//! - [`agent`]: the agent as a process, and [`health`]: an endpoint for it to probe.
//! - [`hung`]: a file system that never answers.

pub mod agent;
pub mod api;
mod assets;
pub mod cluster;
pub mod config_map;
pub mod health;
pub mod hung;
pub mod kubeconfig;
mod nodes;
pub mod promtool;
pub mod proxy;
pub mod skip;
mod tls;

pub use nodes::{node, taints};

use std::time::Duration;

/// How long the waiting helpers of this crate wait before they fail.
pub const DEADLINE: Duration = Duration::from_mins(1);
