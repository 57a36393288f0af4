//! The processes of the node and of the control plane.

use std::fs;

use anyhow::{Context as _, Result};
use rustix::process::{Pid, Signal, kill_process};

/// Lets a program of the node or of the control plane stand still.
pub(crate) fn freeze(program: &str) -> Result<()> {
    signal(program, Signal::STOP)
}

/// Lets it go on.
pub(crate) fn thaw(program: &str) -> Result<()> {
    signal(program, Signal::CONT)
}

fn signal(program: &str, signal: Signal) -> Result<()> {
    Ok(kill_process(running(program)?, signal)?)
}

pub(crate) fn running(program: &str) -> Result<Pid> {
    process(program).with_context(|| format!("{program} does not run"))
}

/// The process with this name: all processes here are those of the node or of the control plane.
pub(crate) fn process(name: &str) -> Option<Pid> {
    let mut processes = fs::read_dir("/proc").ok()?.flatten();
    processes.find_map(|process| {
        let id = Pid::from_raw(process.file_name().to_str()?.parse().ok()?)?;
        let found = fs::read_to_string(process.path().join("comm")).ok()?;
        (found.trim() == name).then_some(id)
    })
}
