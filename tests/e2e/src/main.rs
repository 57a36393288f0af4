//! `make e2e`: scenarios of untaint on a real node, with a real kubelet and a real containerd.
//!
//! The processes, from the outside to the inside:
//!
//! 1. [`front`]: what a person starts. It checks the requirements, and passes on an interrupt.
//! 2. [`supervisor`]: survives the death of the front. It runs one scenario after another, removes what no namespace
//!    removes, and compares the state of the machine before and after.
//! 3. [`scenarios`]: each runs as process 1 in namespaces of its own, with a control plane in them ([`habitat`]). When it
//!    ends, the kernel removes its processes, mounts and network devices.
//! 4. [`node`] and [`node_init`]: a machine in the machine, which can be switched off and on.

#![expect(clippy::print_stdout, reason = "the output is for people")]

mod agent;
mod by_hand;
mod cgroups;
mod checks;
mod client;
mod commands;
mod eventually;
mod faults;
mod front;
mod habitat;
mod images;
mod machine;
mod node;
mod node_init;
mod processes;
mod requirements;
mod scenarios;
mod stand_in;
mod supervisor;
mod timeline;

use std::process::ExitCode;

use anyhow::Result;

fn main() -> ExitCode {
    run().unwrap_or_else(|error| {
        println!("error: {error:#}");
        ExitCode::FAILURE
    })
}

fn run() -> Result<ExitCode> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match &arguments[..] {
        [supervisor::COMMAND, rest @ ..] => supervisor::main(rest),
        [scenarios::COMMAND, name, logs] => scenarios::main(name, logs.as_ref()),
        [node_init::COMMAND, disk] => node_init::main(disk.as_ref()),
        names => front::main(names),
    }
}
