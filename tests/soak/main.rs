//! Races with other writers, reloads under stress, and load. `make test` uses small numbers, and `make soak` uses large
//! ones. Each test prints a summary.

#![allow(
    clippy::panic,
    clippy::unwrap_used,
    reason = "whatever fails here fails a test"
)]

mod endless;
mod ledger;
mod load;
mod memory;
mod races;
mod reload;
mod writer;

use std::io::Write as _;
use std::path::Path;

use testkit::agent::{Agent, run_on};

/// The number in this environment variable, or `reduced` if it is not set.
fn amount(variable: &str, reduced: usize) -> usize {
    let set = std::env::var(variable);
    set.map_or(reduced, |set| set.parse().unwrap())
}

/// Prints a line. `eprintln!` would show it only if the test fails.
fn summarize(line: &str) {
    let mut out = std::io::stderr().lock();
    writeln!(out, "{line}").unwrap();
}

/// An agent on this Node with the configuration and the kubeconfig in `dir`.
fn agent(node: &str, dir: &Path, more: &[&str]) -> Agent {
    let [config, kubeconfig] = ["config.yaml", "kubeconfig"].map(|name| dir.join(name));
    let all = [&run_on(node, &config, &kubeconfig), more].concat();
    Agent::start(env!("CARGO_BIN_EXE_untaint"), &all, &[]).unwrap()
}
