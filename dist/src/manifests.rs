//! The manifests for each example, as `untaint manifests` writes them.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result, ensure};

use crate::files::Files;
use crate::read;

/// The manifests in `deploy/` for a form other than a DaemonSet of untaint's own. They name the DaemonSet around untaint.
const OTHER_FORMS: [(&str, &str); 3] = [
    ("flannel-sidecar", "deploy/sidecar/untaint.yaml"),
    ("init-container", "deploy/init-container/untaint.yaml"),
    ("post-start", "deploy/post-start/untaint.yaml"),
];

pub(crate) fn add(files: &mut Files, untaint: &Path) -> Result<()> {
    for (name, path) in OTHER_FORMS {
        files.add(format!("manifests/{name}.yaml"), read(path)?);
    }
    for entry in fs::read_dir("examples").context("examples")? {
        let path = entry?.path();
        let name = path
            .file_stem()
            .and_then(|name| name.to_str())
            .context("a name")?;
        let is_configuration = path.extension().is_some_and(|kind| kind == "yaml");
        // These two examples are for their forms only.
        if !is_configuration || OTHER_FORMS.iter().any(|(form, _)| *form == name) {
            continue;
        }
        let mut command = Command::new(untaint);
        command
            .env_clear()
            .args(["manifests", "--config"])
            .arg(&path);
        let output = command
            .output()
            .with_context(|| untaint.display().to_string())?;
        let errors = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "{}: {errors}", path.display());
        files.add(format!("manifests/{name}.yaml"), output.stdout);
    }
    Ok(())
}
