//! `untaint install`.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use anyhow::Context;

use super::Failure;
use crate::cli::Exit;

/// The file's name in the directory.
const NAME: &str = "untaint";

/// Copies the running program, whole or not at all: a hook may start it while a newer version is being installed.
pub(super) fn install(directory: &Path) -> Result<Exit, Failure> {
    let target = directory.join(NAME);
    let part = directory.join(format!(".{NAME}.{}", std::process::id()));
    let copied = copy(&part, &target);
    if copied.is_err() {
        let _ = fs::remove_file(&part);
    }
    copied.with_context(|| format!("failed to install {}", target.display()))?;
    Ok(Exit::Done)
}

fn copy(part: &Path, target: &Path) -> anyhow::Result<()> {
    // By the kernel's name for it: the path it was started by may be another program by now.
    fs::copy("/proc/self/exe", part)?;
    fs::set_permissions(part, fs::Permissions::from_mode(0o755))?;
    fs::rename(part, target)?;
    Ok(())
}
