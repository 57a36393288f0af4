//! The process that a person starts.

use std::process::{Command, ExitCode, Stdio};

use anyhow::{Context as _, Result, bail};
use tokio::signal::unix::{SignalKind, signal};

use crate::{requirements, scenarios, supervisor};

/// Runs the scenarios of these names, or all.
pub(crate) fn main(names: &[&str]) -> Result<ExitCode> {
    let known: Vec<&str> = scenarios::ALL
        .iter()
        .map(|scenario| scenario.name)
        .collect();
    for name in names {
        if !known.contains(name) {
            bail!(
                "unknown scenario '{name}': choose from {}, separated by spaces",
                known.join(" ")
            );
        }
    }
    requirements::check(&scenarios::chosen(names))?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(supervise(names))
}

async fn supervise(names: &[&str]) -> Result<ExitCode> {
    // The pipe is the connection: if this process ends in any way, the supervisor notices it.
    let mut supervisor = tokio::process::Command::from({
        let mut command = Command::new(std::env::current_exe()?);
        command.arg(supervisor::COMMAND).args(names);
        command
    })
    .stdin(Stdio::piped())
    // An interrupt from the terminal must not reach it.
    .process_group(0)
    .spawn()?;
    let pipe = supervisor.stdin.take().context("a piped standard input")?;
    let mut interrupts = signal(SignalKind::interrupt())?;
    let mut terminations = signal(SignalKind::terminate())?;
    tokio::select! {
        status = supervisor.wait() => {
            drop(pipe);
            let status = status?;
            let Some(code) = status.code() else {
                bail!("the supervisor has ended by {status}: the next run removes what is left");
            };
            return Ok(u8::try_from(code).unwrap_or(1).into());
        }
        _ = interrupts.recv() => {}
        _ = terminations.recv() => {}
    }
    println!("\ninterrupted: cleaning up");
    drop(pipe);
    supervisor.wait().await?;
    Ok(130.into())
}
