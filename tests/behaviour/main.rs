//! The real program against an API server. `tests/README.md` lists the situations and their tests.
//!
//! Tests with [`scene::OnCluster`] run on a real API server, with the rights of the manifests. Tests with
//! [`scene::OnStandIn`] show what a real server cannot be made to do.

#![allow(clippy::unwrap_used, reason = "whatever fails here fails a test")]

mod absence;
mod after;
mod bind_mounts;
mod commands;
mod condition;
mod credentials;
mod denial;
mod events;
mod fault_matrix;
mod faults;
mod hanging;
mod karpenter;
mod metrics;
mod mounts;
mod multus;
mod neighbours;
mod observations;
mod once;
mod orphans;
mod reload;
mod removal;
mod retaint;
mod scene;
mod self_check;
mod server;
mod sockets;
mod stopping;
mod surface;
mod time;
mod watching;
