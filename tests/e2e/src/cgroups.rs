//! The control groups of the pods. They are no part of a namespace, so they are the only thing to remove. With version 2,
//! so are the controllers that are enabled for them.

use std::fs;
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};

/// The parent of all groups that the kubelet makes.
pub(crate) const ROOT: &str = "untaint-e2e";
const HIERARCHIES: &str = "/sys/fs/cgroup";
/// With version 2: the controllers of the groups below the root.
pub(crate) const ENABLED: &str = "/sys/fs/cgroup/cgroup.subtree_control";
/// The kubelet refuses a parent that lacks one of these, if the machine has it (`getSupportedUnifiedControllers`).
const NEEDED: [&str; 5] = ["cpu", "cpuset", "hugetlb", "memory", "pids"];
/// The kernel needs a moment after the last process of a group has ended.
const PATIENCE: Duration = Duration::from_secs(10);

/// The mount points of the hierarchies: several with version 1, one with version 2.
pub(crate) fn hierarchies() -> Result<Vec<PathBuf>> {
    if Path::new(ENABLED).exists() {
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

/// The controllers that are enabled for the groups below the root: none with version 1, which has no such file.
pub(crate) fn enabled() -> String {
    fs::read_to_string(ENABLED).unwrap_or_default()
}

/// Creates the parent, which the kubelet expects.
pub(crate) fn create() -> Result<()> {
    if Path::new(ENABLED).exists() {
        let available = fs::read_to_string(Path::new(HIERARCHIES).join("cgroup.controllers"))?;
        enable(&missing(&available, &enabled()))?;
    }
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

/// What to write to enable the controllers that the kubelet needs.
fn missing(available: &str, enabled: &str) -> Vec<String> {
    let has = |list: &str, name: &str| list.split_whitespace().any(|one| one == name);
    let missing = NEEDED.iter();
    let missing = missing.filter(|name| has(available, name) && !has(enabled, name));
    missing.map(|name| format!("+{name}")).collect()
}

/// What to write so that only those controllers are enabled that were enabled `before`.
fn surplus(before: &str, enabled: &str) -> Vec<String> {
    let mut surplus = Vec::new();
    for name in enabled.split_whitespace() {
        if before.split_whitespace().all(|one| one != name) {
            surplus.push(format!("-{name}"));
        }
    }
    surplus
}

fn enable(changes: &[String]) -> Result<()> {
    if changes.is_empty() {
        return Ok(());
    }
    let changes = changes.join(" ");
    fs::write(ENABLED, &changes).with_context(|| {
        format!("write {changes:?} to {ENABLED}: use a virtual machine, or a container with the control groups of its machine")
    })
}

/// Disables what [`create`], the kubelet and runc have enabled (runc enables all). `before` is what [`enabled`] has
/// returned then.
pub(crate) fn restore(before: &str) -> Result<()> {
    enable(&surplus(before, &enabled()))
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Each row: available, enabled before, written at first, enabled by runc, written at the end.
    #[test]
    fn with_version_2_needed_controllers_are_enabled_and_only_the_new_ones_disabled() {
        let rows = [
            (
                "cpuset cpu io memory hugetlb pids rdma\n",
                "cpu memory pids\n",
                "+cpuset +hugetlb",
                "cpuset cpu io memory hugetlb pids rdma\n",
                "-cpuset -io -hugetlb -rdma",
            ),
            (
                "cpu memory pids\n",
                "cpu memory pids\n",
                "",
                "cpu memory pids\n",
                "",
            ),
            ("cpu io\n", "\n", "+cpu", "cpu io\n", "-cpu -io"),
        ];
        for (available, before, first, all, last) in rows {
            assert_eq!(missing(available, before).join(" "), first);
            assert_eq!(surplus(before, all).join(" "), last);
        }
    }
}
