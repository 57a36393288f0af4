//! Much of everything: races with other writers, reloads under stress, load. `make test` runs each with small counts,
//! `make soak` with large ones; each prints a line of what it did.

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

use testkit::agent::Agent;

/// How much of something: what this environment variable says, or `reduced`.
fn amount(variable: &str, reduced: usize) -> usize {
    let set = std::env::var(variable);
    set.map_or(reduced, |set| set.parse().unwrap())
}

/// Tells people what was done. Not by a macro, whose lines tests that succeed keep to themselves.
fn summarize(line: &str) {
    let mut out = std::io::stderr().lock();
    writeln!(out, "{line}").unwrap();
}

/// An agent on this Node with the configuration and the kubeconfig in `dir`.
fn agent(node: &str, dir: &Path, more: &[&str]) -> Agent {
    let [config, kubeconfig] = ["config.yaml", "kubeconfig"].map(|name| dir.join(name));
    let files = [config.to_str().unwrap(), kubeconfig.to_str().unwrap()];
    let [config, kubeconfig] = files;
    let arguments = [
        "run",
        "--config",
        config,
        "--kubeconfig",
        kubeconfig,
        "--node-name",
        node,
    ];
    let all = [&arguments[..], more].concat();
    Agent::start(env!("CARGO_BIN_EXE_untaint"), &all, &[]).unwrap()
}
