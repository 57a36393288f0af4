//! untaint removes a start-up taint from its own Node when the node can really run pods.
//!
//! The modules below are in layers. A module uses modules of the layers above its own in this file and no others; `make lint`
//! checks that (`tests/docs/layers.rs`). So data flows one way: [`config`] → [`gate`] → [`rule`] (the decision) →
//! [`node`] (the write) → [`status`] → [`metrics`], [`events`] and [`server`]. Only [`agent`] composes.
//! CONTRIBUTING.md lists where each behaviour is.
//!
//! What runs on nodes needs Linux. The rest also builds elsewhere, for people who write configurations and manifests.

// Much of the base is only for nodes.
#![cfg_attr(not(target_os = "linux"), allow(dead_code))]

// The base of everything else. It knows nothing of Kubernetes.
mod backoff;
mod blocking;
#[cfg(target_os = "linux")]
pub mod boot;
pub mod incident;
mod rate_limit;
mod text;

mod bind_mount;
#[cfg(target_os = "linux")]
pub mod fs_watch;
mod small_file;
mod syntax;

mod quantity;
pub mod taint;

// The configuration, and what a CNI directory means.
pub mod config;

#[cfg(target_os = "linux")]
pub mod conflist;

// The API server and the Node.
#[cfg(target_os = "linux")]
pub mod api;

#[cfg(target_os = "linux")]
pub mod node;

// Gates, and the decision.
#[cfg(target_os = "linux")]
pub mod gate;

#[cfg(target_os = "linux")]
pub mod rule;

// What operators see.
#[cfg(target_os = "linux")]
pub mod status;

#[cfg(target_os = "linux")]
pub mod events;
#[cfg(target_os = "linux")]
pub mod metrics;
#[cfg(target_os = "linux")]
pub mod reload;

// The program.
pub mod manifests;

#[cfg(target_os = "linux")]
pub mod agent;

#[cfg(target_os = "linux")]
pub mod server;

pub mod logging;

pub mod cli;

pub mod commands;

/// `User-Agent` of every request, to the API server and to probed endpoints.
pub(crate) const USER_AGENT: &str = concat!("untaint/", env!("CARGO_PKG_VERSION"));

/// Of every Event. untaint has no domain to qualify it with.
pub(crate) const REPORTING_CONTROLLER: &str = "untaint";
