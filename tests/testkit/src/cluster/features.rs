//! The feature gates of kube-apiserver, which differ from version to version.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context as _, Result, ensure};
use tokio::process::Command;
use tokio::sync::OnceCell;

use crate::assets::CONTROL_PLANE;

/// Whether this feature gate of kube-apiserver is on by default. `None` if kube-apiserver does not list it: this version
/// does not know the gate, or the feature is always on. Also `None` if there is no kube-apiserver.
///
/// # Panics
///
/// If kube-apiserver does not list its gates.
pub async fn feature_gate(name: &str) -> Option<bool> {
    static GATES: OnceCell<Result<FeatureGates>> = OnceCell::const_new();
    let programs = CONTROL_PLANE.directory().await.ok()?;
    match GATES.get_or_init(|| FeatureGates::of(programs)).await {
        Ok(gates) => gates.0.get(name).copied(),
        Err(error) => panic!("the feature gates of kube-apiserver: {error:#}"),
    }
}

/// Whether kube-apiserver serves streaming lists by default. Kubernetes 1.30, 1.31 and 1.33 do not.
pub async fn streaming_lists() -> bool {
    feature_gate("WatchList").await != Some(false)
}

/// The gates that kube-apiserver lists, with their defaults.
struct FeatureGates(BTreeMap<String, bool>);

impl FeatureGates {
    async fn of(programs: &Path) -> Result<Self> {
        let program = programs.join("kube-apiserver");
        let output = Command::new(&program)
            .arg("--help")
            .kill_on_drop(true)
            .output()
            .await
            .with_context(|| format!("run {}", program.display()))?;
        let gates = Self::parse(&String::from_utf8(output.stdout)?);
        ensure!(
            !gates.0.is_empty(),
            "{} --help has no feature gates",
            program.display()
        );
        Ok(gates)
    }

    /// A line of the help ends in `Name=true|false (BETA - default=true)`. From 1.31 on, `kube:` is before the name.
    fn parse(help: &str) -> Self {
        let gate = |line: &str| {
            let (name, rest) = line.split_once("=true|false (")?;
            let name = name.rsplit([' ', ':']).next()?;
            Some((name.to_owned(), rest.contains("default=true")))
        };
        Self(help.lines().filter_map(gate).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_gates_are_read_from_the_help_of_every_version() {
        let old = "      --feature-gates mapStringBool   A set of key=value pairs. Options are:\n\
                   \x20       APIResponseCompression=true|false (BETA - default=true)\n\
                   \x20       WatchList=true|false (ALPHA - default=false)\n";
        let new = "If the component is not specified, defaults to \"kube\". Options are:\n\
                   \x20       kube:APIResponseCompression=true|false (BETA - default=true)\n\
                   \x20       kube:WatchList=true|false (BETA - default=false)\n";
        for help in [old, new] {
            let gates = FeatureGates::parse(help).0.into_iter();
            let expected = [("APIResponseCompression", true), ("WatchList", false)];
            assert!(gates.eq(expected.map(|(name, on)| (name.to_owned(), on))));
        }
    }
}
