//! untaint removes a start-up taint from its own Node once the node is really ready for ordinary pods.
//!
//! Data flows one way: [`config`] → [`gate`] → [`rule`] (the decision) → [`node`] (the write) → `status` → `metrics` and `server`.
//! [`taint`], [`conflist`], [`rule`], [`gate::threshold`] and [`node::patch`] are pure: contents and time come in as
//! arguments. Only [`agent`] composes.

pub mod agent;
pub mod api;
pub mod backoff;
mod blocking;
pub mod boot;
pub mod cli;
pub mod commands;
pub mod condition;
pub mod config;
pub mod conflist;
pub mod events;
pub mod fs_watch;
pub mod gate;
pub mod logging;
pub mod manifests;
pub mod metrics;
pub mod node;
pub mod notice;
pub mod reload;
pub mod rule;
pub mod server;
pub mod status;
pub mod taint;
mod text;
mod text_file;
mod tokens;

/// `User-Agent` of every request, to the API server and to probed endpoints.
pub(crate) const USER_AGENT: &str = concat!("untaint/", env!("CARGO_PKG_VERSION"));
