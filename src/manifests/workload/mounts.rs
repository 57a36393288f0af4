//! Which directories of the host the gates look at.

use std::collections::BTreeSet;
use std::path::{Component, Path, PathBuf};

use thiserror::Error;

use crate::bind_mount::can_be_mounted;
use crate::config::{Check, Endpoint, ProbeHandler};
use crate::manifests::Manifests;
use crate::manifests::yaml::scalar;
use crate::text::printable_path;

/// Every container has these, with the same content except for [`NOT_OF_HOST`].
const IN_EVERY_CONTAINER: [&str; 2] = ["/proc", "/sys"];

/// The reason for `/proc` with the number of a process.
pub const PROCESSES: &str = "a container sees only its own processes; use a gate for what the process offers, such as a file or a socket";

/// Where a container has something else than the host, and why.
pub const NOT_OF_HOST: [(&[&str], &str); 4] = [
    (&["/proc/self", "/proc/thread-self"], PROCESSES),
    (
        // `defaultMaskedPaths` in k8s.io/kubernetes/pkg/securitycontext/util.go.
        &[
            "/proc/acpi",
            "/proc/asound",
            "/proc/interrupts",
            "/proc/kcore",
            "/proc/keys",
            "/proc/latency_stats",
            "/proc/sched_debug",
            "/proc/scsi",
            "/proc/timer_list",
            "/proc/timer_stats",
            "/sys/devices/virtual/powercap",
            "/sys/firmware",
        ],
        "container runtimes hide it from containers; use a gate for another file",
    ),
    (
        &[
            "/proc/sys/fs/binfmt_misc",
            "/sys/fs/bpf",
            "/sys/fs/cgroup",
            "/sys/fs/pstore",
            "/sys/kernel/config",
            "/sys/kernel/debug",
            "/sys/kernel/security",
            "/sys/kernel/tracing",
        ],
        "a container has another file system there than the host; use a gate for another file",
    ),
    (
        &["/dev/disk", "/dev/mapper"],
        "it is a symbolic link to a device, which a pod does not see; use a gate for a file under /sys",
    ),
];

/// Directories that the pods may create without harm: those of CNI plugins, as docs/installing.md and the examples have
/// them, and those that every node has.
const EXPECTED: [&str; 17] = [
    "/etc/cni",
    "/etc/cni/net.d",
    "/run/flannel",
    "/var/run/aws-node",
    "/var/run/secrets-store-csi-providers",
    "/opt/cni",
    "/var/lib/rancher/k3s/agent/etc/cni",
    "/var/lib/rancher/rke2/agent/etc/cni",
    "/etc/kubernetes/cni",
    "/var/snap/microk8s/current/args",
    "/dev/shm",
    "/opt",
    "/run",
    "/tmp",
    "/usr/lib",
    "/usr/libexec",
    "/var/lib",
];

/// A path that no volume can make visible.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error(
    "gate {gate}: {} cannot be made visible in a pod: {reason}",
    printable_path(path)
)]
pub struct MountError {
    gate: String,
    path: PathBuf,
    reason: &'static str,
}

/// The API server refuses such a path of a volume. Its target depends on symbolic links.
const LEADS_BACK: &str = "the path of a volume cannot contain '..'; write the path without it";
const TAKEN: &str = "its parent directory also contains files that the pod itself needs; move it to a directory of its own";

/// The directories to mount, none of them within another.
pub(super) fn directories(manifests: &Manifests) -> Result<BTreeSet<PathBuf>, MountError> {
    let mut directories = BTreeSet::new();
    for check in manifests.checks() {
        let Check::Probe(probe) = check else {
            continue;
        };
        for path in paths(&probe.handler) {
            let error = |reason| MountError {
                gate: probe.name.clone(),
                path: path.clone(),
                reason,
            };
            if path.components().any(|part| part == Component::ParentDir) {
                return Err(error(LEADS_BACK));
            }
            if let Some(reason) = not_of_host(path) {
                return Err(error(reason));
            }
            if IN_EVERY_CONTAINER.iter().any(|own| path.starts_with(own)) {
                continue;
            }
            directories.insert(around(path).ok_or_else(|| error(TAKEN))?);
        }
    }
    let all = directories.clone();
    directories.retain(|directory| {
        let mut around = directory.ancestors().skip(1);
        !around.any(|outer| all.contains(outer))
    });
    Ok(directories)
}

/// Why a pod sees something else than the host at `path`.
fn not_of_host(path: &Path) -> Option<&'static str> {
    let mut places = NOT_OF_HOST.iter();
    let found = places.find(|(paths, _)| paths.iter().any(|other| path.starts_with(other)));
    let process = path.strip_prefix("/proc").ok();
    let process = process.and_then(|path| path.iter().next()?.to_str()?.parse::<u32>().ok());
    let reason = found.map(|(_, reason)| *reason);
    reason.or(process.map(|_| PROCESSES))
}

/// The directories among `all` that can be on a node only because of a wrong path: the kubelet creates those that are
/// missing, because a gate must also see what a program creates later.
pub(in crate::manifests) fn created(manifests: &Manifests) -> Result<Vec<PathBuf>, MountError> {
    let mut all = directories(manifests)?;
    all.retain(|path| !EXPECTED.iter().any(|known| path == Path::new(known)));
    Ok(all.into_iter().collect())
}

/// The directory around `path`. A mount keeps showing the directory that was mounted: after `path` itself is deleted
/// and recreated, a mount of it would show the deleted one.
fn around(path: &Path) -> Option<PathBuf> {
    let around = path.parent().filter(|around| can_be_mounted(around))?;
    Some(around.to_owned())
}

/// The paths of the host that a check looks at. The program of `exec` is in the image, or is mounted by hand.
fn paths(handler: &ProbeHandler) -> Vec<&PathBuf> {
    match handler {
        ProbeHandler::CniConfig(cni) => cni.bin_dirs.iter().chain([&cni.dir]).collect(),
        ProbeHandler::File(file) => vec![&file.path],
        ProbeHandler::HttpGet(http) => socket(&http.endpoint),
        ProbeHandler::Grpc(grpc) => socket(&grpc.endpoint),
        ProbeHandler::TcpSocket(tcp) => socket(&tcp.endpoint),
        ProbeHandler::Exec(_) => Vec::new(),
    }
}

fn socket(endpoint: &Endpoint) -> Vec<&PathBuf> {
    match endpoint {
        Endpoint::Unix { path } => vec![path],
        Endpoint::Tcp { .. } => Vec::new(),
    }
}

pub(super) fn mounts(directories: &BTreeSet<PathBuf>) -> String {
    let mount = |index: usize, path: &str| {
        format!("- name: untaint-host-{index}\n  mountPath: {path}\n  readOnly: true\n")
    };
    each(directories, mount)
}

pub(super) fn volumes(directories: &BTreeSet<PathBuf>) -> String {
    if directories.is_empty() {
        return String::new();
    }
    let volume = |index: usize, path: &str| {
        format!(
            "- name: untaint-host-{index}\n  hostPath:\n    path: {path}\n    type: DirectoryOrCreate\n"
        )
    };
    format!("{ABOUT_VOLUMES}{}", each(directories, volume))
}

const ABOUT_VOLUMES: &str = "\
# For each path that a gate looks at, the directory around it. If the path itself were mounted, the pod would not see
# that it is deleted and recreated.
";

fn each(directories: &BTreeSet<PathBuf>, item: impl Fn(usize, &str) -> String) -> String {
    let directories = directories.iter().enumerate();
    let items = directories.map(|(index, path)| item(index, &scalar(&path.to_string_lossy())));
    items.collect()
}
