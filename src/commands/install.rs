//! `untaint install`.

use std::fs::{File, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, anyhow};

use super::{Failure, at};
use crate::cli::Exit;

/// The file's name in the directory.
const NAME: &str = "untaint";

/// Copies the running program, whole or not at all: a hook may start it while a newer version is being installed, and
/// several containers may install it at a time.
pub(super) async fn install(directory: PathBuf) -> Result<Exit, Failure> {
    Ok(at(&directory.clone(), move || install_into(&directory)).await?)
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
    // A name of its own: in containers every process has the same number.
    let mut part = tempfile::NamedTempFile::new_in(directory)?;
    // By the kernel's name for it: the path it was started by may be another program by now.
    io::copy(&mut File::open("/proc/self/exe")?, &mut part)?;
    part.as_file()
        .set_permissions(Permissions::from_mode(0o755))?;
    part.persist(target)?;
    Ok(())
}
