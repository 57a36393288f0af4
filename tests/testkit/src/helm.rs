//! Helm, and what renders charts.

use std::path::PathBuf;

use anyhow::{Context as _, Result, ensure};
use tokio::process::Command;

use crate::assets::HELM;

pub struct Helm(PathBuf);

impl Helm {
    /// `None` if Helm cannot be built: the test is reported as skipped and must return. With `CI=true`, this panics
    /// instead.
    pub async fn get() -> Option<Self> {
        Some(Self(HELM.or_skip().await?.to_owned()))
    }

    /// Runs Helm with these arguments, and returns its output. Fails with its messages.
    pub async fn run(&self, arguments: &[&str]) -> Result<String> {
        self.program("helm", arguments).await
    }

    /// Compares the objects in files with the schemas of their kinds.
    pub async fn kubeconform(&self, arguments: &[&str]) -> Result<String> {
        self.program("kubeconform", arguments).await
    }

    async fn program(&self, name: &str, arguments: &[&str]) -> Result<String> {
        let output = Command::new(self.0.join(name))
            .args(arguments)
            .kill_on_drop(true)
            .output()
            .await
            .with_context(|| format!("run {name}"))?;
        let printed = String::from_utf8(output.stdout)?;
        let said = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "{name}: {said}{printed}");
        Ok(printed)
    }
}
