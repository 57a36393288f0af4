//! `untaint install`.

use std::fs::{File, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, anyhow};

use super::{Failure, run_blocking_on};
use crate::cli::Exit;

const NAME: &str = "untaint";

/// Copies the running program atomically: a hook may start it during the installation of a newer version, and several
/// containers may install it at the same time.
pub(super) async fn install(directory: PathBuf) -> Result<Exit, Failure> {
    let name = directory.display().to_string();
    Ok(run_blocking_on(&name, move || install_into(&directory)).await?)
}

fn install_into(directory: &Path) -> anyhow::Result<Exit> {
    if !directory.is_dir() {
        return Err(anyhow!("{} is not a directory", directory.display()));
    }
    let target = directory.join(NAME);
    copy(directory, &target).with_context(|| format!("failed to install {}", target.display()))?;
    Ok(Exit::Done)
}

fn copy(directory: &Path, target: &Path) -> anyhow::Result<()> {
    // A random name: process ids are not unique among containers.
    let mut part = tempfile::NamedTempFile::new_in(directory)?;
    // The path that this program was started from may be another program by now.
    io::copy(&mut File::open("/proc/self/exe")?, &mut part)?;
    part.as_file()
        .set_permissions(Permissions::from_mode(0o755))?;
    part.persist(target)?;
    Ok(())
}
