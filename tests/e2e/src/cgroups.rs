//! The control groups of the pods. They are no part of a namespace, so they are the only thing to remove.

use std::fs;
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};

/// The parent of all groups that the kubelet makes.
pub(crate) const ROOT: &str = "untaint-e2e";
const HIERARCHIES: &str = "/sys/fs/cgroup";
/// The kernel needs a moment after the last process of a group has ended.
const PATIENCE: Duration = Duration::from_secs(10);

/// The mount points of the hierarchies: several with version 1, one with version 2.
pub(crate) fn hierarchies() -> Result<Vec<PathBuf>> {
    if Path::new(HIERARCHIES).join("cgroup.controllers").exists() {
        return Ok(vec![HIERARCHIES.into()]);
    }
    let mut found = Vec::new();
    for entry in fs::read_dir(HIERARCHIES)? {
        let entry = entry?;
        // Several names of one hierarchy are links.
        if entry.file_type()?.is_dir() && entry.path().join("cgroup.procs").exists() {
            found.push(entry.path());
        }
    }
    found.sort();
    Ok(found)
}

/// Creates the parent, which the kubelet expects.
pub(crate) fn create() -> Result<()> {
    for hierarchy in hierarchies()? {
        fs::create_dir(hierarchy.join(ROOT))?;
        // In this hierarchy of version 1, a group can be used only when these two are set.
        for file in ["cpuset.cpus", "cpuset.mems"] {
            let (from, to) = (hierarchy.join(file), hierarchy.join(ROOT).join(file));
            if from.exists() && hierarchy.ends_with("cpuset") {
                fs::write(to, fs::read(from)?)?;
            }
        }
    }
    Ok(())
}

/// Removes the groups of this run, or of one that was killed together with its supervisor.
pub(crate) fn remove() -> Result<()> {
    let deadline = Instant::now() + PATIENCE;
    for hierarchy in hierarchies()? {
        let root = hierarchy.join(ROOT);
        while root.exists() {
            remove_below(&root);
            if Instant::now() > deadline {
                bail!(
                    "{} is still in use: end the processes in it",
                    root.display()
                );
            }
            sleep(Duration::from_millis(10));
        }
    }
    Ok(())
}

/// Removes all groups below the parent, as switching off a machine does.
pub(crate) fn empty() -> Result<()> {
    let deadline = Instant::now() + PATIENCE;
    for hierarchy in hierarchies()? {
        let root = hierarchy.join(ROOT);
        let groups = || {
            fs::read_dir(&root)
                .into_iter()
                .flatten()
                .flatten()
                .map(|entry| entry.path())
        };
        while groups().any(|path| path.is_dir()) {
            groups()
                .filter(|path| path.is_dir())
                .for_each(|group| remove_below(&group));
            if Instant::now() > deadline {
                bail!("{} is still in use", root.display());
            }
            sleep(Duration::from_millis(10));
        }
    }
    Ok(())
}

/// A group with processes or other groups in it cannot be removed, and is tried again.
fn remove_below(group: &Path) {
    for entry in fs::read_dir(group).into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            remove_below(&entry.path());
        }
    }
    let _ = fs::remove_dir(group);
}
