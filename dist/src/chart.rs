//! The package of the Helm chart in `deploy/chart`, as `helm package` makes it, except that its bytes are always the same.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, ensure};

use crate::archive::{Entry, gzip, tar};
use crate::files::Files;
use crate::{Release, read};

const SOURCE: &str = "deploy/chart";
/// In bytes.
const MOST: usize = 25 << 10;

/// Adds the package.
pub(crate) fn add(files: &mut Files, release: &Release) -> Result<()> {
    let source = Path::new(SOURCE);
    let about = read(source.join("Chart.yaml"))?;
    let field = |name: &str| about.lines().find_map(|line| line.strip_prefix(name));
    let name = field("name: ").context("Chart.yaml has no name")?;
    let version = &release.version;
    for key in ["version: ", "appVersion: "] {
        let found = field(key).map(|value| value.trim_matches('"'));
        ensure!(
            found == Some(version),
            "{SOURCE}/Chart.yaml: {key}must be {version}"
        );
    }

    let mut paths = Vec::new();
    list(source, &mut paths)?;
    // Helm reads it first.
    paths.sort_by_key(|path| (!path.ends_with("Chart.yaml"), path.clone()));
    let mut contents = Vec::new();
    for path in &paths {
        let inside = Path::new(name).join(path.strip_prefix(source)?);
        let inside = inside.to_str().context("a name")?.to_owned();
        contents.push((inside, fs::read(path)?));
    }
    let entries = contents.iter().map(|(path, bytes)| Entry {
        path,
        mode: 0o644,
        bytes,
    });
    let package = gzip(&tar(&entries.collect::<Vec<_>>(), release.time)?)?;
    ensure!(
        package.len() <= MOST,
        "the package of the chart has {} bytes, more than {MOST}",
        package.len()
    );
    files.add(format!("{name}-{version}.tgz"), package);
    Ok(())
}

/// All files below `directory`.
fn list(directory: &Path, paths: &mut Vec<PathBuf>) -> Result<()> {
    for entry in fs::read_dir(directory).with_context(|| directory.display().to_string())? {
        let path = entry?.path();
        if path.is_dir() {
            list(&path, paths)?;
        } else {
            paths.push(path);
        }
    }
    Ok(())
}
