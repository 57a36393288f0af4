//! The programs.

use std::path::{Path, PathBuf};
use std::process::Stdio;

use anyhow::{Context as _, Result, bail};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, BufReader};
use tokio::process::Command;
use tokio::sync::OnceCell;

use crate::skip::say;

/// Prints the directory that has the programs, and builds them where it must.
const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../cluster/assets");

/// The directory with etcd, kube-apiserver and kubectl, or why there is none.
pub async fn available() -> Result<&'static Path, &'static str> {
    static PROGRAMS: OnceCell<Result<PathBuf, String>> = OnceCell::const_new();
    let programs = PROGRAMS
        .get_or_init(|| async { run().await.map_err(|error| format!("{error:#}")) })
        .await;
    programs
        .as_ref()
        .map(PathBuf::as_path)
        .map_err(String::as_str)
}

async fn run() -> Result<PathBuf> {
    let mut script = Command::new(SCRIPT)
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
