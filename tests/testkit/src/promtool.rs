//! promtool, which checks metrics and alerts as Prometheus does.

use std::path::PathBuf;
use std::process::Stdio;

use anyhow::{Context as _, Result, ensure};
use tokio::io::AsyncWriteExt as _;
use tokio::process::Command;

use crate::assets::PROMTOOL;

pub struct Promtool(PathBuf);

impl Promtool {
    /// `None` if promtool cannot be built: the test is reported as skipped and must return. With `CI=true`, this panics
    /// instead.
    pub async fn get() -> Option<Self> {
        Some(Self(PROMTOOL.or_skip().await?.join("promtool")))
    }

    /// Runs promtool with these arguments on `input`. Fails with its messages.
    pub async fn run(&self, arguments: &[&str], input: &str) -> Result<()> {
        let mut promtool = Command::new(&self.0)
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .context("run promtool")?;
        let mut stdin = promtool.stdin.take().context("a piped standard input")?;
        stdin.write_all(input.as_bytes()).await?;
        drop(stdin);
        let output = promtool.wait_with_output().await?;
        let said = [output.stdout, output.stderr].concat();
        let said = String::from_utf8_lossy(&said);
        ensure!(output.status.success(), "promtool: {said}\n{input}");
        Ok(())
    }
}
