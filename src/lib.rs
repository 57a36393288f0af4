//! untaint removes a start-up taint from its own Node when the node can really run pods.
//!
//! The modules below are in layers. A module uses modules of the layers above its own in this file and no others; `make lint`
//! checks that (`tests/docs/layers.rs`). So data flows one way: [`config`] → [`gate`] → [`rule`] (the decision) →
//! [`node`] (the write) → [`status`] → [`metrics`], [`events`] and [`server`]. Only [`agent`] composes.
//! CONTRIBUTING.md lists where each behaviour is.

// The base of everything else. It knows nothing of Kubernetes.
mod backoff;
mod blocking;
pub mod boot;
pub mod incident;
mod rate_limit;
mod text;

mod bind_mount;
pub mod fs_watch;
mod small_file;
mod syntax;

mod quantity;
pub mod taint;

// The configuration, and what a CNI directory means.
pub mod config;

pub mod conflist;

// The API server and the Node.
pub mod api;

pub mod node;

// Gates, and the decision.
pub mod gate;

pub mod rule;

// What operators see.
pub mod status;

pub mod events;
pub mod metrics;
pub mod reload;

// The program.
pub mod manifests;

pub mod agent;

pub mod server;

pub mod logging;

pub mod cli;

pub mod commands;

/// `User-Agent` of every request, to the API server and to probed endpoints.
pub(crate) const USER_AGENT: &str = concat!("untaint/", env!("CARGO_PKG_VERSION"));
