//! Watches the configuration files while the agent runs, and reports changes.

use std::future::poll_fn;
use std::path::PathBuf;
use std::task::Poll;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use tokio::sync::mpsc::{self, error::SendError};
use tokio::task::spawn_blocking;
use tokio::time::{sleep, timeout};
use tracing::{debug, error, info, warn};

use crate::bind_mount::deleted_configuration;
use crate::blocking::joined;
use crate::config::{self, Configuration, Problems, SourceFile};
use crate::fs_watch::FsWatch;
use crate::incident::Incident;
use crate::rate_limit::TokenBucket;
use crate::status::ConfigurationStatus;

/// The interval of readings if no file events arrive. The kubelet needs about as long to bring a new ConfigMap to the node,
/// and one reading a minute costs nothing noticeable.
const POLL: Duration = Duration::from_mins(1);
/// From an event to the reading: writing a file in place, or replacing it, takes a few steps.
const SETTLE: Duration = Duration::from_millis(100);
/// A reading that takes longer counts as a failure. Its end is still awaited.
const PATIENCE: Duration = Duration::from_secs(5);
/// The number of problems that are reported at a time.
const MOST_PROBLEMS: usize = 20;

/// A configuration with its origin.
#[derive(Debug, Clone, PartialEq)]
pub struct Loaded {
    pub configuration: Configuration,
    pub status: ConfigurationStatus,
}

/// A change of the configuration files.
#[derive(Debug, Clone, PartialEq)]
pub enum Reload {
    /// The files have another configuration.
    Changed(Loaded),
    /// The active configuration stays, and its status has changed: a file is invalid, or all are valid again.
    Kept(ConfigurationStatus),
}

/// Another configuration with the hash of its files, or `None` if they are the active ones.
type Look = Result<Option<(Configuration, String)>, Problems>;

impl Loaded {
    /// Reads these files and directories, as [`config::read_files`] does.
    pub fn from_files(paths: &[PathBuf]) -> Result<Self, Problems> {
        let files = config::read_files(paths)?;
        Ok(Self {
            configuration: parse(&files)?,
            status: status(config::names(paths), Some(config::hash(&files))),
        })
    }

    pub fn without_file(configuration: Configuration) -> Self {
        Self {
            configuration,
            status: status("command line".into(), None),
        }
    }
}

fn status(source: String, sha256: Option<String>) -> ConfigurationStatus {
    ConfigurationStatus {
        source,
        sha256,
        loaded: Timestamp::now(),
        reloads: 0,
        failed_reloads: 0,
        failing: false,
        last_failure: None,
    }
}

/// Watches the files and directories that the configuration with this `status` was read from, and reports by `reloads`.
/// Returns when their receiver is dropped.
pub async fn follow(
    paths: Vec<PathBuf>,
    status: ConfigurationStatus,
    reloads: mpsc::Sender<Reload>,
) {
    let _ = follow_by(look, paths, status, reloads).await;
}

/// `look` may hang, as file systems do.
async fn follow_by(
    look: impl Fn(&[PathBuf], &str) -> Look + Clone + Send + 'static,
    paths: Vec<PathBuf>,
    status: ConfigurationStatus,
    reloads: mpsc::Sender<Reload>,
) -> Result<(), SendError<Reload>> {
    // A directory wakes by its entries, also if it is itself behind links beside it.
    let watches = paths.iter().map(|path| FsWatch::through_siblings(path));
    let mut watches: Vec<_> = watches.collect();
    let mut followed = Followed {
        status,
        allowance: TokenBucket::LOG_LINES,
    };
    loop {
        match timeout(POLL, one_changed(&mut watches)).await {
            Ok(()) => sleep(SETTLE).await,
            Err(_) => watches.iter_mut().for_each(FsWatch::retry),
        }
        let (look, paths) = (look.clone(), paths.clone());
        let active = followed.status.sha256.clone().unwrap_or_default();
        let mut looking = spawn_blocking(move || look(&paths, &active));
        let looked = if let Ok(looked) = timeout(PATIENCE, joined(&mut looking)).await {
            looked
        } else {
            let source = &followed.status.source;
            let message = format!("{source}: the file system does not answer");
            if let Some(reload) = followed.failed(message) {
                reloads.send(reload).await?;
            }
            joined(&mut looking).await
        };
        if let Some(reload) = followed.apply(looked) {
            reloads.send(reload).await?;
        }
    }
}

/// Completes when one of the watches does. Safe to cancel, as each of them is.
async fn one_changed(watches: &mut [FsWatch]) {
    let changes = watches.iter_mut().map(|watch| Box::pin(watch.changed()));
    let mut changes: Vec<_> = changes.collect();
    poll_fn(|context| {
        let mut changes = changes.iter_mut();
        if changes.any(|change| change.as_mut().poll(context).is_ready()) {
            Poll::Ready(())
        } else {
            Poll::Pending
        }
    })
    .await;
}

/// Reads the files once, on the thread of the caller.
fn look(paths: &[PathBuf], active: &str) -> Look {
    let deleted = paths
        .iter()
        .filter_map(|path| Some((path.display().to_string(), deleted_configuration(path)?)));
    let deleted: Vec<_> = deleted.collect();
    if !deleted.is_empty() {
        return Err(Problems::of_files(deleted));
    }
    let files = config::read_files(paths)?;
    let sha256 = config::hash(&files);
    if sha256 == active {
        return Ok(None);
    }
    Ok(Some((parse(&files)?, sha256)))
}

/// Logs the warnings about valid files.
fn parse(files: &[SourceFile]) -> Result<Configuration, Problems> {
    let (configuration, warnings) = config::parse_files(files)?;
    for problem in warnings.to_string().lines() {
        warn!(problem, "the configuration file is valid, with a warning");
    }
    Ok(configuration)
}

struct Followed {
    status: ConfigurationStatus,
    /// Limits the log lines about a file whose problems change again and again.
    allowance: TokenBucket,
}

impl Followed {
    fn apply(&mut self, looked: Look) -> Option<Reload> {
        let source = &self.status.source;
        match looked {
            Ok(Some((configuration, sha256))) => {
                self.status.sha256 = Some(sha256);
                self.status.loaded = Timestamp::now();
                self.status.reloads += 1;
                self.status.failing = false;
                Some(Reload::Changed(Loaded {
                    configuration,
                    status: self.status.clone(),
                }))
            }
            Ok(None) if self.status.failing => {
                info!(
                    source,
                    "the configuration file is valid again and is the same as the active configuration"
                );
                self.status.failing = false;
                Some(Reload::Kept(self.status.clone()))
            }
            Ok(None) => {
                debug!(source, "read the configuration; it is the active one");
                None
            }
            Err(error) => self.failed(shortened(&error.to_string())),
        }
    }

    fn failed(&mut self, message: String) -> Option<Reload> {
        let last = self.status.last_failure.as_ref();
        if self.status.failing && last.is_some_and(|last| last.message == message) {
            return None;
        }
        let is_in_limit = self.allowance.try_take(Instant::now());
        for problem in message.lines() {
            if is_in_limit {
                error!(
                    problem,
                    "the configuration file is invalid; continuing with the active configuration"
                );
            } else {
                debug!(
                    problem,
                    "the configuration file is invalid; continuing with the active configuration"
                );
            }
        }
        self.status.failing = true;
        self.status.failed_reloads += 1;
        self.status.last_failure = Some(Incident::now(message));
        Some(Reload::Kept(self.status.clone()))
    }
}

/// The first [`MOST_PROBLEMS`] lines, and the number of the others.
fn shortened(problems: &str) -> String {
    let mut lines: Vec<_> = problems.lines().collect();
    let more = format!("and {} more", lines.len().saturating_sub(MOST_PROBLEMS));
    if lines.len() > MOST_PROBLEMS {
        lines.truncate(MOST_PROBLEMS);
        lines.push(&more);
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests;
