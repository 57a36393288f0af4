//! Programs that others wrote, built from their Go modules where they must be.

use std::path::{Path, PathBuf};
use std::process::Stdio;

use anyhow::{Context as _, Result, bail};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, BufReader};
use tokio::process::Command;
use tokio::sync::OnceCell;

use crate::skip::{say, skip};

/// Prints the directory that has the programs, and builds them where it must.
const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../cluster/assets");

/// etcd, kube-apiserver and kubectl.
pub(crate) static CONTROL_PLANE: Assets = Assets::new(&[]);
/// promtool.
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

    /// Their directory, or why there is none.
    pub(crate) async fn directory(&self) -> Result<&Path, &str> {
        let directory = self
            .directory
            .get_or_init(|| async {
                run(self.arguments)
                    .await
                    .map_err(|error| format!("{error:#}"))
            })
            .await;
        directory
            .as_ref()
            .map(PathBuf::as_path)
            .map_err(String::as_str)
    }

    /// Their directory. `None`: they cannot be had; the test is to return, having been reported as skipped. With
    /// `CI=true` it panics instead.
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

async fn run(arguments: &[&str]) -> Result<PathBuf> {
    let mut script = Command::new(SCRIPT)
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .with_context(|| format!("run {SCRIPT}"))?;

    // A build takes minutes: what it says is shown at once, and the last of it is the reason if it fails.
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
