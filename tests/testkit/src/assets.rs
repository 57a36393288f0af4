//! Programs of other projects, built from their Go modules if necessary.

use std::path::{Path, PathBuf};
use std::process::Stdio;

use anyhow::{Context as _, Result, bail};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, BufReader};
use tokio::process::Command;
use tokio::sync::OnceCell;

use crate::skip::{say, skip};

/// Builds the programs if necessary, and prints their directory.
const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../cluster/assets");

pub(crate) static CONTROL_PLANE: Assets = Assets::new(&[]);
pub(crate) static HELM: Assets = Assets::new(&["helm"]);
pub(crate) static PROMTOOL: Assets = Assets::new(&["promtool"]);

/// Programs in one directory.
pub(crate) struct Assets {
    arguments: &'static [&'static str],
    directory: OnceCell<Result<PathBuf, String>>,
}

impl Assets {
    const fn new(arguments: &'static [&'static str]) -> Self {
        let directory = OnceCell::const_new();
        Self {
            arguments,
            directory,
        }
    }

    /// The directory of the programs, or the reason why they cannot be built.
    pub(crate) async fn directory(&self) -> Result<&Path, &str> {
        let directory = self
            .directory
            .get_or_init(|| async {
                build(self.arguments)
                    .await
                    .map_err(|error| format!("{error:#}"))
            })
            .await;
        directory
            .as_ref()
            .map(PathBuf::as_path)
            .map_err(String::as_str)
    }

    /// The directory of the programs. `None` if they cannot be built: the test is reported as skipped and must return.
    /// With `CI=true`, this panics instead.
    pub(crate) async fn or_skip(&self) -> Option<&Path> {
        match self.directory().await {
            Ok(directory) => Some(directory),
            Err(reason) => {
                skip(reason);
                None
            }
        }
    }
}

/// Runs `tests/cluster/assets` with these arguments, which builds programs if necessary, and returns their directory.
pub async fn build(arguments: &[&str]) -> Result<PathBuf> {
    let mut script = Command::new(SCRIPT)
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .with_context(|| format!("run {SCRIPT}"))?;

    // A build takes minutes, so its output is shown at once. If it fails, the last line is the reason.
    let stderr = script.stderr.take().context("a piped standard error")?;
    let mut lines = BufReader::new(stderr).lines();
    let mut last = String::new();
    while let Some(line) = lines.next_line().await? {
        say(&line);
        last = line;
    }
    let mut stdout = script.stdout.take().context("a piped standard output")?;
    let mut directory = String::new();
    stdout.read_to_string(&mut directory).await?;
    if !script.wait().await?.success() {
        bail!(last);
    }
    Ok(PathBuf::from(directory.trim_end()))
}
