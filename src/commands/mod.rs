//! What the commands do.

mod check;
mod config;
mod install;
mod manifests;
mod run;
mod wait;

use std::io::{self, Write};
use std::path::Path;
use std::time::Duration;

use anyhow::Context as _;
use tokio::signal::unix::{SignalKind, signal};
use tokio::task::spawn_blocking;
use tokio::time::{Instant, timeout, timeout_at};
use tracing::{error, info, warn};

use crate::blocking::joined;
use crate::cli::{Command, ConfigOrGates, Exit, GateArgs};
use crate::config::{Check, CniConfig, Configuration, FileCheck, Gate, Probe, Rule, Schedule};
use crate::gate::probe::exec;
use crate::taint::TaintMatcher;

/// How long a file system may be silent before the log says so.
const PATIENCE: Duration = Duration::from_secs(5);

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
        let result = match command {
            // On the heap: it is large.
            Command::Run(args) => Box::pin(run::run(args)).await,
            Command::Wait(args) => wait::wait(args).await,
            Command::Check(args) => check::check(args).await,
            Command::Config(command) => config::config(command).await,
            Command::Manifests(args) => manifests::manifests(args).await,
            Command::Install { directory } => install::install(directory).await,
        };
        match result {
            Ok(exit) => exit,
            Err(failure) => failure.tell().await,
        }
    };
    let exit = tokio::select! {
        exit = work => exit,
        signal = stop() => match signal {
            Ok(signal) => {
                info!(signal, "stopped");
                stopped
            }
            Err(error) => Failure::Failed(error.into()).tell().await,
        },
        error = exec::reap_orphans() => Failure::Failed(error.into()).tell().await,
    };
    exec::wait_for_leftovers().await;
    exit
}

/// Puts the result of a command on the standard output.
async fn print(text: impl Into<String>) -> Result<Exit, Failure> {
    let text = text.into();
    aside(move || io::stdout().write_all(text.as_bytes()))
        .await
        .context("failed to print")?;
    Ok(Exit::Done)
}

/// Does `work` on another thread: it may block for ever, and signals and time-outs must still end the program.
async fn aside<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    joined(&mut spawn_blocking(work)).await
}

/// The same for what looks at `path`. Says so if the file system is silent.
async fn at<T: Send + 'static>(path: &Path, work: impl FnOnce() -> T + Send + 'static) -> T {
    let mut task = spawn_blocking(work);
    if let Ok(result) = timeout(PATIENCE, joined(&mut task)).await {
        return result;
    }
    warn!(path = %path.display(), "a file system has not answered yet; waiting for it");
    joined(&mut task).await
}

/// The same for `read`, which gives what is in the file or why it is no configuration.
async fn load<T, E>(
    path: &Path,
    deadline: Option<Instant>,
    read: fn(&Path) -> Result<T, E>,
) -> Result<T, Failure>
where
    T: Send + 'static,
    E: ToString + Send + 'static,
{
    let file = path.to_owned();
    match by(deadline, at(path, move || read(&file))).await {
        Some(loaded) => loaded.map_err(|error| Failure::Usage(error.to_string())),
        None => Err(Failure::Late(format!(
            "{}: the file system does not answer",
            path.display()
        ))),
    }
}

/// Why a command could not do its work.
enum Failure {
    /// The user must change something: told as it is, without the look of a log.
    Usage(String),
    /// The machine was not up to it.
    Failed(anyhow::Error),
    /// The user's time-out was too short.
    Late(String),
}

impl Failure {
    async fn tell(self) -> Exit {
        match self {
            Self::Usage(error) => {
                let _ = aside(move || writeln!(io::stderr(), "{error}")).await;
                Exit::Usage
            }
            Self::Failed(error) => {
                error!(error = format!("{error:#}"), "failed");
                Exit::Failed
            }
            Self::Late(error) => {
                error!(error, "not in time");
                Exit::NotReady
            }
        }
    }
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

/// The end of a time-out that begins now. One that is longer than a clock can tell has none.
fn deadline(limit: Option<Duration>) -> Option<Instant> {
    Instant::now().checked_add(limit?)
}

/// What `work` gives, if it is done by the `deadline`.
async fn by<T>(deadline: Option<Instant>, work: impl Future<Output = T>) -> Option<T> {
    match deadline {
        Some(deadline) => timeout_at(deadline, work).await.ok(),
        None => Some(work.await),
    }
}

impl ConfigOrGates {
    /// The file's rules or, without a file, one rule without a taint of its own.
    async fn configuration(self, deadline: Option<Instant>) -> Result<Configuration, Failure> {
        match self.config {
            Some(path) => load(&path, deadline, crate::config::load).await,
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
