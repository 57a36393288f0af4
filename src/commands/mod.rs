//! What the commands do.

mod check;
mod config;
mod install;
mod manifests;
mod run;
mod wait;

use std::io::{self, Write};
use std::time::Duration;

use anyhow::Context as _;
use tokio::signal::unix::{SignalKind, signal};
use tracing::{error, info};

use crate::cli::{Command, ConfigOrGates, Exit, GateArgs};
use crate::config::{Check, CniConfig, Configuration, FileCheck, Gate, Probe, Rule, Schedule};
use crate::gate::exec;
use crate::taint::TaintMatcher;

/// Carries out `command`, until SIGTERM or SIGINT at the latest. As PID 1 a process has no default action for
/// signals, so that every command must handle them.
pub async fn dispatch(command: Command) -> Exit {
    // `run` without an end of its own is done when it is stopped; all others had something left to do.
    let stopped = if matches!(&command, Command::Run(args) if !args.once) {
        Exit::Done
    } else {
        Exit::NotReady
    };
    let work = async {
        match command {
            // On the heap: it is large.
            Command::Run(args) => Box::pin(run::run(args)).await,
            Command::Wait(args) => wait::wait(args).await,
            Command::Check(args) => check::check(args).await,
            Command::Config(command) => config::config(&command),
            Command::Manifests(args) => manifests::manifests(args),
            Command::Install { directory } => install::install(&directory),
        }
    };
    let result = tokio::select! {
        result = work => result,
        signal = stop() => match signal {
            Ok(signal) => {
                info!(signal, "stopped");
                Ok(stopped)
            }
            Err(error) => Err(Failure::Failed(error.into())),
        },
        error = exec::tend() => Err(Failure::Failed(error.into())),
    };
    exec::finish().await;
    result.unwrap_or_else(|failure| match failure {
        Failure::Usage(error) => {
            let _ = writeln!(io::stderr(), "{error}");
            Exit::Usage
        }
        Failure::Failed(error) => {
            error!(error = format!("{error:#}"), "failed");
            Exit::Failed
        }
    })
}

/// Puts the result of a command on the standard output.
fn print(text: &str) -> Result<Exit, Failure> {
    io::stdout()
        .write_all(text.as_bytes())
        .context("failed to print")?;
    Ok(Exit::Done)
}

/// Why a command could not do its work.
enum Failure {
    /// The user must change something: told as it is, without the look of a log.
    Usage(String),
    /// The machine was not up to it.
    Failed(anyhow::Error),
}

impl From<anyhow::Error> for Failure {
    fn from(error: anyhow::Error) -> Self {
        Self::Failed(error)
    }
}

async fn stop() -> io::Result<&'static str> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    Ok(tokio::select! {
        _ = terminate.recv() => "SIGTERM",
        _ = interrupt.recv() => "SIGINT",
    })
}

/// Whether `work` was done within `limit`.
async fn in_time(limit: Option<Duration>, work: impl Future<Output = ()>) -> bool {
    let Some(limit) = limit else {
        work.await;
        return true;
    };
    tokio::time::timeout(limit, work).await.is_ok()
}

impl ConfigOrGates {
    /// The file's rules or, without a file, one rule without a taint of its own.
    fn configuration(self) -> Result<Configuration, Failure> {
        match self.config {
            Some(path) => {
                crate::config::load(&path).map_err(|error| Failure::Usage(error.to_string()))
            }
            None => Ok(one_rule(
                TaintMatcher {
                    key: String::new(),
                    value: None,
                    effect: None,
                },
                self.gates,
            )),
        }
    }
}

/// The configuration that flags stand for.
fn one_rule(taint: TaintMatcher, gates: GateArgs) -> Configuration {
    let GateArgs {
        cni,
        http_get,
        file,
    } = gates;
    let cni = cni.map(|network| {
        Check::CniConfig(CniConfig {
            network,
            ..CniConfig::default()
        })
    });
    let http_get = http_get.into_iter().map(Check::HttpGet);
    let file = file.into_iter().map(|path| {
        Check::File(FileCheck {
            path,
            newer_than_boot: false,
        })
    });
    let checks = cni.into_iter().chain(http_get).chain(file);
    let gates = checks.enumerate().map(|(index, check)| {
        let name = match &check {
            Check::CniConfig(_) => "cni".into(),
            Check::HttpGet(_) => format!("http-get-{index}"),
            _ => format!("file-{index}"),
        };
        Gate::from(Probe {
            name,
            check,
            schedule: Schedule::default(),
        })
    });
    Configuration {
        events: false,
        rules: vec![Rule::new("command-line", taint, gates.collect())],
    }
}
