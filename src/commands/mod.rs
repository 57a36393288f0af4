//! The commands.

mod config;
mod manifests;
// Everywhere, people can write configurations and manifests. Nodes run Linux.
#[cfg_attr(not(target_os = "linux"), path = "no_node.rs")]
mod node;

use std::io::{self, Write};
use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context as _;
use tokio::signal::unix::{SignalKind, signal};
use tokio::task::spawn_blocking;
use tokio::time::{Instant, timeout, timeout_at};
use tracing::{error, info, warn};

use crate::blocking::joined;
use crate::cli::{Command, Exit, NodeCommand};
use crate::config::{Problems, is_standard_input, names};

/// After this time, untaint logs that a file system does not answer.
const PATIENCE: Duration = Duration::from_secs(5);

/// Runs `command` until it is done, or until SIGTERM or SIGINT. PID 1 has no default action for signals, so every command
/// must handle them.
pub async fn dispatch(command: Command) -> Exit {
    // Only `run` without `--once` has nothing left to do when it is stopped.
    let stopped = match &command {
        Command::Node(NodeCommand::Run(args)) if !args.once => Exit::Done,
        _ => Exit::NotReady,
    };
    let work = async {
        let result = match command {
            Command::Node(command) => node::dispatch(command).await,
            Command::Config(command) => config::config(command).await,
            Command::Manifests(args) => manifests::manifests(args).await,
            Command::Version => print(concat!("untaint ", env!("CARGO_PKG_VERSION"), "\n")).await,
        };
        match result {
            Ok(exit) => exit,
            Err(failure) => failure.report().await,
        }
    };
    let exit = tokio::select! {
        exit = work => exit,
        signal = stop_signal() => match signal {
            Ok(signal) => {
                if stopped == Exit::Done {
                    info!(signal, "stopped by a signal");
                } else {
                    error!(signal, "a signal stopped the command before it was done");
                }
                stopped
            }
            Err(error) => Failure::Failed(error.into()).report().await,
        },
        error = node::reap_orphans() => Failure::Failed(error.into()).report().await,
    };
    node::wait_for_orphans().await;
    exit
}

async fn print(text: impl Into<String>) -> Result<Exit, Failure> {
    let text = text.into();
    run_blocking(move || io::stdout().write_all(text.as_bytes()))
        .await
        .context("failed to print")?;
    Ok(Exit::Done)
}

/// Prints to standard error. If that fails, there is nowhere to report it.
async fn print_error(text: String) {
    let _ = run_blocking(move || writeln!(io::stderr(), "{text}")).await;
}

/// Runs `work` on another thread: it may block without end, and signals and time-outs must still end the program.
async fn run_blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    joined(&mut spawn_blocking(work)).await
}

/// Like [`run_blocking`], for work on files. Logs if their file system does not answer.
async fn run_blocking_on<T: Send + 'static>(
    path: &str,
    work: impl FnOnce() -> T + Send + 'static,
) -> T {
    let mut task = spawn_blocking(work);
    if let Ok(result) = timeout(PATIENCE, joined(&mut task)).await {
        return result;
    }
    warn!(path, "a file system has not answered yet; waiting for it");
    joined(&mut task).await
}

/// Prints one warning a line as plain text, like errors of usage: the reader is the one who has typed the command.
async fn print_warnings(warnings: &str) {
    for warning in warnings.lines() {
        print_error(format!("warning: {warning}")).await;
    }
}

/// Reads configuration files. `read` returns their contents, or why they are not a configuration.
async fn read_configuration<T: Send + 'static>(
    paths: &[PathBuf],
    deadline: Option<Instant>,
    read: fn(&[PathBuf]) -> Result<T, Problems>,
) -> Result<T, Failure> {
    let (names, files) = (names(paths), paths.to_owned());
    let work = move || read(&files);
    // Another program may take its time to write to standard input.
    let (read, silence) = if paths.iter().any(|path| is_standard_input(path)) {
        let read = finish_by(deadline, run_blocking(work)).await;
        (read, "it has not ended, or the file system does not answer")
    } else {
        let read = finish_by(deadline, run_blocking_on(&names, work)).await;
        (read, "the file system does not answer")
    };
    match read {
        Some(result) => result.map_err(Failure::from),
        None => Err(Failure::Late(format!("{names}: {silence}"))),
    }
}

/// Why a command failed.
enum Failure {
    /// The user must change something. The message is printed as plain text, not logged.
    Usage(String),
    Failed(anyhow::Error),
    /// The time-out of the command line passed.
    Late(String),
}

impl Failure {
    async fn report(self) -> Exit {
        match self {
            Self::Usage(error) => {
                print_error(error).await;
                Exit::Usage
            }
            Self::Failed(error) => {
                error!(error = format!("{error:#}"), "untaint failed");
                Exit::Failed
            }
            Self::Late(error) => {
                error!(error, "not in time");
                Exit::NotReady
            }
        }
    }
}

impl From<Problems> for Failure {
    fn from(problems: Problems) -> Self {
        Self::Usage(problems.to_string())
    }
}

impl From<anyhow::Error> for Failure {
    fn from(error: anyhow::Error) -> Self {
        Self::Failed(error)
    }
}

async fn stop_signal() -> io::Result<&'static str> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    Ok(tokio::select! {
        _ = terminate.recv() => "SIGTERM",
        _ = interrupt.recv() => "SIGINT",
    })
}

/// The end of a time-out that begins now. There is none if a clock cannot represent it.
fn deadline_in(limit: Option<Duration>) -> Option<Instant> {
    Instant::now().checked_add(limit?)
}

/// Returns the result of `work`, or `None` if the `deadline` passes first.
async fn finish_by<T>(deadline: Option<Instant>, work: impl Future<Output = T>) -> Option<T> {
    match deadline {
        Some(deadline) => timeout_at(deadline, work).await.ok(),
        None => Some(work.await),
    }
}
