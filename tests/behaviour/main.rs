//! The real program against an API server: one test for each situation in `tests/README.md`, and more.
//!
//! `cluster` tests run on the real API server with the rights that are shipped; `stand_in` tests show what a real
//! server cannot be made to show.

#![allow(clippy::unwrap_used, reason = "whatever fails here fails a test")]

mod absence;
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
mod stopping;
mod surface;
mod time;
mod watching;
