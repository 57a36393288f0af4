//! What must not change on the machine.

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::fs;
use std::path::Path;
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::Result;

use crate::cgroups::{self, hierarchies};
use crate::habitat::RUN;
use crate::node_init::SETTINGS;

/// Directories of files that a node writes, and other programs do not.
const FILES: [&str; 4] = [
    "/etc/cni",
    "/etc/kubernetes",
    "/opt/cni",
    "/usr/libexec/kubernetes",
];
/// Directories that a node makes. If the machine has one, another program uses it, such as Docker: so what is in them is
/// not looked at.
const DIRECTORIES: [&str; 10] = [
    "/run/containerd",
    "/run/flannel",
    "/run/netns",
    "/run/runc",
    "/var/lib/cni",
    "/var/lib/containerd",
    "/var/lib/kubelet",
    "/var/log/containers",
    "/var/log/pods",
    "/var/run/kubernetes",
];
/// Network devices that only a scenario or a CNI makes. The end of `wire` is `eth0`, which machines have.
const DEVICES: [&str; 6] = [
    "cni0",
    "flannel.1",
    "kube-bridge",
    "kube-dummy-if",
    "stand-in",
    "wire",
];
const GROUPS: [&str; 2] = [cgroups::ROOT, "kubepods"];
/// Parts of the names of settings that are counters, or that change by themselves.
const VOLATILE: [&str; 10] = [
    "/fs/aio-nr",
    "/fs/dentry-state",
    "/fs/file-nr",
    "/fs/inode-",
    "/kernel/ns_last_pid",
    "/kernel/perf_event_max_sample_rate",
    "/kernel/pty/nr",
    "/kernel/random/",
    "/net/netfilter/nf_conntrack_count",
    "/vm/stat_refresh",
];
/// Whoever reads this directory mounts a file system there.
const AUTOMOUNT: &str = "/proc/sys/fs/binfmt_misc";

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    Controllers,
    Device,
    Group,
    Mount,
    Path,
    Setting,
}

impl fmt::Display for Kind {
    fn fmt(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        formatter.write_str(match self {
            Self::Controllers => "controllers",
            Self::Device => "network device",
            Self::Group => "control group",
            Self::Mount => "mount",
            Self::Path => "path",
            Self::Setting => "setting",
        })
    }
}

/// The state of the machine: things with their names, and what is known of each.
pub(crate) struct Machine(BTreeMap<(Kind, String), String>);

/// What differs, a line for each thing.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Differences {
    /// What a scenario can have made.
    pub(crate) own: Vec<String>,
    /// What other programs of the machine, its users, or its kernel have changed meanwhile.
    pub(crate) foreign: Vec<String>,
}

impl Machine {
    pub(crate) fn look() -> Result<Self> {
        let mut state = BTreeMap::new();
        // The fields before the mount point are numbers that differ between namespaces.
        for line in fs::read_to_string("/proc/self/mountinfo")?.lines() {
            let fields: Vec<&str> = line.split(' ').collect();
            state.insert((Kind::Mount, fields[4].to_owned()), fields[5..].join(" "));
        }
        for entry in fs::read_dir("/sys/class/net")? {
            let name = entry?.file_name().display().to_string();
            state.insert((Kind::Device, name), String::new());
        }
        for path in FILES {
            add_path(&mut state, Path::new(path));
        }
        for path in DIRECTORIES {
            if Path::new(path).exists() {
                state.insert((Kind::Path, path.to_owned()), String::new());
            }
        }
        for hierarchy in hierarchies()? {
            for entry in fs::read_dir(hierarchy)? {
                let entry = entry?;
                if entry.file_type()?.is_dir() {
                    let name = entry.path().display().to_string();
                    state.insert((Kind::Group, name), String::new());
                }
            }
        }
        let enabled = cgroups::enabled().trim().to_owned();
        state.insert((Kind::Controllers, cgroups::ENABLED.to_owned()), enabled);
        add_settings(&mut state, Path::new("/proc/sys"));
        Ok(Self(state))
    }

    /// What differs now, after waiting up to `patience` for traces of scenarios to vanish.
    pub(crate) fn differences(&self, patience: Duration) -> Result<Differences> {
        let deadline = Instant::now() + patience;
        loop {
            let found = self.compare(&Self::look()?);
            if found.own.is_empty() || Instant::now() > deadline {
                return Ok(found);
            }
            sleep(Duration::from_millis(100));
        }
    }

    fn compare(&self, now: &Self) -> Differences {
        let mut found = Differences::default();
        let things: BTreeSet<_> = self.0.keys().chain(now.0.keys()).collect();
        for thing in things {
            let (kind, name) = thing;
            let text = match (self.0.get(thing), now.0.get(thing)) {
                (Some(before), Some(after)) if before == after => continue,
                (Some(before), Some(after)) => {
                    format!("{kind} {name}: was {before}, is {after}")
                }
                // Settings come with modules of the kernel, which stay, and with network devices.
                (None, _) if *kind == Kind::Setting => continue,
                (None, _) => format!("{kind} {name}: new"),
                (Some(_), None) => format!("{kind} {name}: gone"),
            };
            if is_own(*kind, name) {
                found.own.push(text);
            } else {
                found.foreign.push(text);
            }
        }
        found
    }

    /// How much was compared, by kind.
    pub(crate) fn summary(&self) -> String {
        let mut counts = BTreeMap::new();
        for (kind, _) in self.0.keys() {
            *counts.entry(kind).or_insert(0) += 1;
        }
        let counts: Vec<_> = counts
            .iter()
            .map(|(kind, count)| format!("{count} × {kind}"))
            .collect();
        counts.join(", ")
    }
}

/// Whether a scenario can have made or changed this. Its processes have ended, and the namespaces with them, so only what
/// has no namespace can be left. Other things can be left if a scenario was not in its namespaces.
fn is_own(kind: Kind, name: &str) -> bool {
    match kind {
        Kind::Controllers | Kind::Path => true,
        Kind::Device => DEVICES.contains(&name),
        Kind::Group => {
            let group = Path::new(name).file_name().and_then(|name| name.to_str());
            group.is_some_and(|group| GROUPS.contains(&group))
        }
        // A scenario makes the root read-only, for itself.
        Kind::Mount => name == "/" || name.starts_with(RUN) || name.contains("/target/e2e/"),
        Kind::Setting => {
            let setting = name.strip_prefix("/proc/sys/");
            setting.is_some_and(|setting| SETTINGS.iter().any(|(name, _)| *name == setting))
        }
    }
}

fn add_path(state: &mut BTreeMap<(Kind, String), String>, path: &Path) {
    let Ok(known) = fs::symlink_metadata(path) else {
        return;
    };
    let detail = format!(
        "{:?} {:?} {}",
        known.file_type(),
        known.modified().ok(),
        known.len()
    );
    state.insert((Kind::Path, path.display().to_string()), detail);
    if known.is_dir() {
        for entry in fs::read_dir(path).into_iter().flatten().flatten() {
            add_path(state, &entry.path());
        }
    }
}

fn add_settings(state: &mut BTreeMap<(Kind, String), String>, directory: &Path) {
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        let path = entry.path();
        let name = path.display().to_string();
        if name == AUTOMOUNT || VOLATILE.iter().any(|part| name.contains(part)) {
            continue;
        }
        if path.is_dir() {
            add_settings(state, &path);
        } else if let Ok(value) = fs::read_to_string(&path) {
            state.insert((Kind::Setting, name), value.trim().to_owned());
        }
    }
}
