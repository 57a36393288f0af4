//! Watches the configuration file while the agent runs, and reports changes.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use jiff::Timestamp;
use tokio::sync::mpsc::{self, error::SendError};
use tokio::task::spawn_blocking;
use tokio::time::{sleep, timeout};
use tracing::{debug, error, info, warn};

use crate::blocking::joined;
use crate::config::{self, Configuration, Problems};
use crate::fs_watch::FsWatch;
use crate::incident::Incident;
use crate::rate_limit::TokenBucket;
use crate::status::ConfigurationStatus;
use crate::text::sha256;

/// The interval of readings if no file events arrive. The kubelet needs about as long to bring a new ConfigMap to the node,
/// and one reading a minute costs nothing noticeable.
const POLL: Duration = Duration::from_mins(1);
/// From an event to the reading: writing a file in place, or replacing it, takes a few steps.
const SETTLE: Duration = Duration::from_millis(100);
/// A reading that takes longer counts as a failure. Its end is still awaited.
const PATIENCE: Duration = Duration::from_secs(5);
/// The number of problems of one file that are reported.
const MOST_PROBLEMS: usize = 20;

/// A configuration with its origin.
#[derive(Debug, Clone, PartialEq)]
pub struct Loaded {
    pub configuration: Configuration,
    pub status: ConfigurationStatus,
}

/// A change of the configuration file.
#[derive(Debug, Clone, PartialEq)]
pub enum Reload {
    /// The file has another configuration.
    Changed(Loaded),
    /// The active configuration stays, and its status has changed: the file is invalid, or is valid again.
    Kept(ConfigurationStatus),
}

/// Another configuration with the hash of its text, or `None` if the text is the active one.
type Look = Result<Option<(Configuration, String)>, Problems>;

impl Loaded {
    pub fn from_file(path: &Path) -> Result<Self, Problems> {
        let text = config::read(path)?;
        Ok(Self {
            configuration: parse(path, &text)?,
            status: status(path.display().to_string(), Some(sha256(&text))),
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

/// Watches the file that the configuration with this `status` was read from, and reports by `reloads`. Returns when their
/// receiver is dropped.
pub async fn follow(path: PathBuf, status: ConfigurationStatus, reloads: mpsc::Sender<Reload>) {
    let _ = follow_by(look, path, status, reloads).await;
}

/// `look` may hang, as file systems do.
async fn follow_by(
    look: impl Fn(&Path, &str) -> Look + Clone + Send + 'static,
    path: PathBuf,
    status: ConfigurationStatus,
    reloads: mpsc::Sender<Reload>,
) -> Result<(), SendError<Reload>> {
    let mut watch = FsWatch::through_siblings(&path);
    let mut followed = Followed {
        status,
        allowance: TokenBucket::LOG_LINES,
    };
    loop {
        match timeout(POLL, watch.changed()).await {
            Ok(()) => sleep(SETTLE).await,
            Err(_) => watch.retry(),
        }
        let (look, path) = (look.clone(), path.clone());
        let active = followed.status.sha256.clone().unwrap_or_default();
        let mut looking = spawn_blocking(move || look(&path, &active));
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

/// Reads the file once, on the thread of the caller.
fn look(path: &Path, active: &str) -> Look {
    let text = config::read(path)?;
    let sha256 = sha256(&text);
    if sha256 == active {
        return Ok(None);
    }
    Ok(Some((parse(path, &text)?, sha256)))
}

/// Logs the warnings about a valid text.
fn parse(path: &Path, text: &str) -> Result<Configuration, Problems> {
    let configuration = config::parse_file(path, text)?;
    let warnings = config::warnings(path, text).map(|warnings| warnings.to_string());
    for line in warnings.iter().flat_map(|warnings| warnings.lines()) {
        let problem = line.replacen("warning: ", "", 1);
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
