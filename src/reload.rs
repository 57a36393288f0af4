//! The configuration file while the agent runs: whenever it has become another one, the agent is told.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use jiff::Timestamp;
use tokio::sync::mpsc;
use tokio::task::spawn_blocking;
use tokio::time::{sleep, timeout};
use tracing::{debug, error, info};

use crate::blocking::joined;
use crate::config::{self, Configuration, Problems};
use crate::fs_watch::FsWatch;
use crate::incident::Incident;
use crate::rate_limit::TokenBucket;
use crate::status::ConfigurationStatus;
use crate::text::sha256;

/// Between two looks where no events arrive. The kubelet itself takes as long to bring a new ConfigMap to the node, and
/// one look a minute is not to be noticed.
const POLL: Duration = Duration::from_mins(1);
/// From an event to the look: who writes a file in place, or puts another in its place, takes a few steps for it.
const SETTLE: Duration = Duration::from_millis(100);
/// How long a look may take before that counts as a failure. It is waited for all the same.
const PATIENCE: Duration = Duration::from_secs(5);
/// Problems of one file that are told; what is behind them is told once these are solved.
const MOST_PROBLEMS: usize = 20;

/// A configuration and where it comes from.
#[derive(Debug, Clone, PartialEq)]
pub struct Loaded {
    /// What it says.
    pub configuration: Configuration,
    /// What is to be told of it.
    pub status: ConfigurationStatus,
}

/// What became of the configuration.
#[derive(Debug, Clone, PartialEq)]
pub enum Reload {
    /// It is another one.
    Changed(Loaded),
    /// The active one stays, and this is to be told of it: the file is bad, or good again.
    Told(ConfigurationStatus),
}

/// What a look at the file gives: another configuration with the hash of its text, `None` if the text is the active one.
type Look = Result<Option<(Configuration, String)>, Problems>;

impl Loaded {
    /// The configuration of a file.
    pub fn from_file(path: &Path) -> Result<Self, Problems> {
        let text = config::read(path)?;
        Ok(Self {
            configuration: config::parse_file(path, &text)?,
            status: status(path.display().to_string(), Some(sha256(&text))),
        })
    }

    /// One that does not come from a file.
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

/// Tells by `reloads` what becomes of the file that the configuration with this `status` was read from. Returns when
/// nobody listens any more.
pub async fn follow(path: PathBuf, status: ConfigurationStatus, reloads: mpsc::Sender<Reload>) {
    follow_by(look, path, status, reloads).await;
}

/// `look` may hang, as file systems do.
async fn follow_by(
    look: impl Fn(&Path, &str) -> Look + Clone + Send + 'static,
    path: PathBuf,
    status: ConfigurationStatus,
    reloads: mpsc::Sender<Reload>,
) {
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
            let silence = format!(
                "{}: the file system does not answer",
                followed.status.source
            );
            if let Some(reload) = followed.failed(silence)
                && reloads.send(reload).await.is_err()
            {
                return;
            }
            joined(&mut looking).await
        };
        if let Some(reload) = followed.take(looked)
            && reloads.send(reload).await.is_err()
        {
            return;
        }
    }
}

/// Looks once, on the thread of the caller.
fn look(path: &Path, active: &str) -> Look {
    let text = config::read(path)?;
    let sha256 = sha256(&text);
    if sha256 == active {
        return Ok(None);
    }
    Ok(Some((config::parse_file(path, &text)?, sha256)))
}

/// What is known of the file.
struct Followed {
    status: ConfigurationStatus,
    /// A file that is bad in ever new ways must not fill the log.
    allowance: TokenBucket,
}

impl Followed {
    /// Gives what is new by this look.
    fn take(&mut self, looked: Look) -> Option<Reload> {
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
                info!(source, "the configuration is again the active one");
                self.status.failing = false;
                Some(Reload::Told(self.status.clone()))
            }
            Ok(None) => {
                debug!(source, "looked at the configuration; it is the active one");
                None
            }
            Err(error) => self.failed(shortened(&error.to_string())),
        }
    }

    /// The active configuration stays.
    fn failed(&mut self, message: String) -> Option<Reload> {
        let last = self.status.last_failure.as_ref();
        if self.status.failing && last.is_some_and(|last| last.message == message) {
            return None;
        }
        let aloud = self.allowance.try_take(Instant::now());
        for problem in message.lines() {
            if aloud {
                error!(problem, "the configuration is bad; the active one stays");
            } else {
                debug!(problem, "the configuration is bad; the active one stays");
            }
        }
        self.status.failing = true;
        self.status.failed_reloads += 1;
        self.status.last_failure = Some(Incident::now(message));
        Some(Reload::Told(self.status.clone()))
    }
}

/// The first of these lines.
fn shortened(problems: &str) -> String {
    let mut lines: Vec<_> = problems.lines().take(MOST_PROBLEMS).collect();
    let more = problems.lines().count() - lines.len();
    let more = format!("and {more} more");
    if problems.lines().nth(MOST_PROBLEMS).is_some() {
        lines.push(&more);
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests;
