//! Which directories of the host the gates look at.

use std::collections::BTreeSet;
use std::path::{Component, Path, PathBuf};

use thiserror::Error;

use crate::config::{Check, Endpoint, ProbeHandler};
use crate::manifests::Manifests;
use crate::manifests::yaml::scalar;

/// Every container has these, with the same content.
const IN_EVERY_CONTAINER: [&str; 2] = ["/proc", "/sys"];

/// No read-only directory of the host can be mounted at these paths, around them or below them.
const PATHS_OF_POD: [&str; 5] = [
    // Mounted by the manifests.
    "/etc/untaint",
    // The container runtime creates this file. Where `/dev` is read-only, the container never starts.
    "/dev/termination-log",
    // Mounted by Kubernetes.
    "/var/run/secrets/kubernetes.io",
    // Files of the image.
    "/untaint",
    "/LICENSE",
];

/// A path that no volume can make visible.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("gate {gate}: {} cannot be made visible in a pod: {reason}", path.display())]
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

/// The directory around `path`. A mount keeps showing the directory that was mounted: after `path` itself is deleted
/// and recreated, a mount of it would show the deleted one.
fn around(path: &Path) -> Option<PathBuf> {
    let around = path.parent()?;
    let is_taken = |taken: &str| Path::new(taken).starts_with(around) || around.starts_with(taken);
    (!PATHS_OF_POD.into_iter().any(is_taken)).then(|| around.to_owned())
}

/// The paths of the host that a check looks at. The program of `exec` is in the image.
fn paths(handler: &ProbeHandler) -> Vec<&PathBuf> {
    match handler {
        ProbeHandler::CniConfig(cni) => cni.bin_dirs.iter().chain([&cni.dir]).collect(),
        ProbeHandler::File(file) => vec![&file.path],
        ProbeHandler::HttpGet(http) => socket(&http.endpoint),
        ProbeHandler::Grpc(grpc) => socket(&grpc.endpoint),
        ProbeHandler::TcpSocket(_) | ProbeHandler::Exec(_) => Vec::new(),
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
        format!("- name: host-{index}\n  mountPath: {path}\n  readOnly: true\n")
    };
    each(directories, mount)
}

pub(super) fn volumes(directories: &BTreeSet<PathBuf>) -> String {
    if directories.is_empty() {
        return String::new();
    }
    let volume = |index: usize, path: &str| {
        format!(
            "- name: host-{index}\n  hostPath:\n    path: {path}\n    type: DirectoryOrCreate\n"
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
