//! What must not change on the machine.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::Result;

use crate::cgroups::hierarchies;

/// Files and directories that a node has, and this machine keeps as they are.
const PATHS: [&str; 16] = [
    "/etc/cni",
    "/etc/hosts",
    "/etc/kubernetes",
    "/etc/resolv.conf",
    "/opt/cni",
    "/run/containerd",
    "/run/flannel",
    "/run/netns",
    "/run/runc",
    "/usr/libexec/kubernetes",
    "/var/lib/cni",
    "/var/lib/containerd",
    "/var/lib/kubelet",
    "/var/log/containers",
    "/var/log/pods",
    "/var/run/kubernetes",
];
/// Parts of the names of settings that are counters, or that change by themselves.
const VOLATILE: [&str; 9] = [
    "/fs/aio-nr",
    "/fs/dentry-state",
    "/fs/file-nr",
    "/fs/inode-",
    "/kernel/ns_last_pid",
    "/kernel/pty/nr",
    "/kernel/random/",
    "/net/netfilter/nf_conntrack_count",
    "/vm/stat_refresh",
];
const NAMESPACES: [&str; 6] = ["cgroup", "ipc", "mnt", "net", "pid", "time"];

/// The state of the machine: a name, and what is known of it.
pub(crate) struct Machine(BTreeMap<String, String>);

impl Machine {
    pub(crate) fn look() -> Result<Self> {
        let mut state = BTreeMap::new();
        // The fields before the mount point are numbers that differ between namespaces.
        for line in fs::read_to_string("/proc/self/mountinfo")?.lines() {
            let fields: Vec<&str> = line.split(' ').collect();
            state.insert(format!("mount {}", fields[4]), fields[5..].join(" "));
        }
        for entry in fs::read_dir("/sys/class/net")? {
            let name = entry?.file_name();
            state.insert(format!("network device {}", name.display()), String::new());
        }
        for path in PATHS {
            add_path(&mut state, Path::new(path));
        }
        // Groups of groups come and go with other programs.
        for hierarchy in hierarchies()? {
            for entry in fs::read_dir(hierarchy)? {
                let entry = entry?;
                if entry.file_type()?.is_dir() {
                    state.insert(
                        format!("control group {}", entry.path().display()),
                        String::new(),
                    );
                }
            }
        }
        add_settings(&mut state, Path::new("/proc/sys"));
        add_namespaces(&mut state)?;
        Ok(Self(state))
    }

    /// What differs now, after waiting up to `patience` for it to vanish.
    pub(crate) fn differences(&self, patience: Duration) -> Result<Vec<String>> {
        let deadline = Instant::now() + patience;
        loop {
            let found = self.compare(&Self::look()?);
            if found.is_empty() || Instant::now() > deadline {
                return Ok(found);
            }
            sleep(Duration::from_millis(100));
        }
    }

    fn compare(&self, now: &Self) -> Vec<String> {
        let mut found = Vec::new();
        for (name, after) in &now.0 {
            match self.0.get(name) {
                None => found.push(format!("{name}: new {after}")),
                Some(before) if before != after => {
                    found.push(format!("{name}: was {before}, is {after}"));
                }
                Some(_) => {}
            }
        }
        // Other programs may end meanwhile, and their namespaces with them.
        let gone = self.0.keys().filter(|name| !now.0.contains_key(*name));
        let gone = gone.filter(|name| !name.starts_with("namespace "));
        found.extend(gone.map(|name| format!("{name}: gone")));
        found
    }

    /// How much was compared, by kind.
    pub(crate) fn summary(&self) -> String {
        let mut counts = BTreeMap::new();
        for name in self.0.keys() {
            let kind = name
                .rsplit_once(' ')
                .map_or(name.as_str(), |(kind, _)| kind);
            *counts.entry(kind).or_insert(0) += 1;
        }
        let counts: Vec<_> = counts
            .iter()
            .map(|(kind, count)| format!("{kind} {count}"))
            .collect();
        counts.join(", ")
    }
}

fn add_path(state: &mut BTreeMap<String, String>, path: &Path) {
    let Ok(known) = fs::symlink_metadata(path) else {
        return;
    };
    let detail = format!(
        "{:?} {:?} {}",
        known.file_type(),
        known.modified().ok(),
        known.len()
    );
    state.insert(format!("path {}", path.display()), detail);
    if known.is_dir() {
        for entry in fs::read_dir(path).into_iter().flatten().flatten() {
            add_path(state, &entry.path());
        }
    }
}

fn add_settings(state: &mut BTreeMap<String, String>, directory: &Path) {
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        let path = entry.path();
        let name = path.display().to_string();
        if VOLATILE.iter().any(|part| name.contains(part)) {
            continue;
        }
        if path.is_dir() {
            add_settings(state, &path);
        } else if let Ok(value) = fs::read_to_string(&path) {
            state.insert(format!("setting {name}"), value.trim().to_owned());
        }
    }
}

/// The namespaces of all processes.
fn add_namespaces(state: &mut BTreeMap<String, String>) -> Result<()> {
    for entry in fs::read_dir("/proc")? {
        let process = entry?.path();
        let is_process = |path: &PathBuf| {
            let name = path.file_name().and_then(|name| name.to_str());
            name.is_some_and(|name| name.bytes().all(|byte| byte.is_ascii_digit()))
        };
        if !is_process(&process) {
            continue;
        }
        for kind in NAMESPACES {
            if let Ok(id) = fs::read_link(process.join("ns").join(kind)) {
                state.insert(format!("namespace {}", id.display()), String::new());
            }
        }
    }
    Ok(())
}
