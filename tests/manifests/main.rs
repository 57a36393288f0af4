//! What is shipped for clusters: as kustomize renders it, as the real API server takes it, and as the program itself
//! reads it.

#![expect(
    clippy::panic,
    clippy::unwrap_used,
    reason = "the helpers of tests fail as tests do"
)]

mod chart;
mod flow_schema;
mod forms;
mod gitops;
mod image;
mod labels;
mod new_nodes;
mod options;
mod parts;
mod permissions;
mod pods;
mod rationale;
mod render;
mod server;
mod uninstall;
mod volumes;
mod warnings;
