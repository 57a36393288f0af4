//! Which directories of the host the gates look at.

use std::collections::BTreeSet;
use std::path::{Component, Path, PathBuf};

use thiserror::Error;

use super::Manifests;
use super::pieces::CONFIG_DIRECTORY;
use crate::config::{Check, Endpoint, Grpc, HttpGet, ProbeHandler};

/// A container has its own, which show the same.
const THERE_ALREADY: [&str; 2] = ["/proc", "/sys"];

/// What Kubernetes and the manifests mount themselves, which does not work within a volume that is read-only; and the files
/// of the image, where no directory can be mounted.
const TAKEN: [&str; 5] = [
    CONFIG_DIRECTORY,
    // The container runtime makes this file: where `/dev` is read-only, the container never starts.
    "/dev/termination-log",
    "/var/run/secrets/kubernetes.io",
    "/untaint",
    "/LICENSE",
];

/// A path that no volume can make visible.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum MountError {
    /// Something else is where the volume would be mounted.
    #[error(
        "gate {gate}: {} cannot be made visible in a pod: the directory around it would be mounted where the pod has other things that it needs; move it into a directory of its own",
        path.display()
    )]
    Taken {
        /// That looks at it.
        gate: String,
        /// What it looks at.
        path: PathBuf,
    },
    /// The API server takes no such path of a volume. Where it leads depends on symbolic links.
    #[error(
        "gate {gate}: {} cannot be made visible in a pod: no volume can have '..' in its path; write the path without it",
        path.display()
    )]
    LeadsBack {
        /// That looks at it.
        gate: String,
        /// What it looks at.
        path: PathBuf,
    },
}

/// The directories to mount, in order, none within another.
pub(super) fn directories(manifests: &Manifests) -> Result<BTreeSet<PathBuf>, MountError> {
    let mut directories = BTreeSet::new();
    for condition in manifests.checks() {
        let Check::Probe(probe) = condition else {
            continue;
        };
        for path in looked_at(&probe.handler) {
            let (gate, looked_at) = (probe.name.clone(), path.to_owned());
            if path.components().any(|part| part == Component::ParentDir) {
                return Err(MountError::LeadsBack {
                    gate,
                    path: looked_at,
                });
            }
            if THERE_ALREADY.iter().any(|own| path.starts_with(own)) {
                continue;
            }
            directories.insert(around(path).ok_or(MountError::Taken {
                gate,
                path: looked_at,
            })?);
        }
    }
    let all = directories.clone();
    directories.retain(|directory| {
        let mut around = directory.ancestors().skip(1);
        !around.any(|outer| all.contains(outer))
    });
    Ok(directories)
}

/// The directory to mount to see what becomes of `path`: the one around it, since a mount stays with what it was made
/// of. Of a directory or a socket that is deleted and made anew, nothing would be seen.
fn around(path: &Path) -> Option<PathBuf> {
    let around = path.parent()?;
    let mut taken = TAKEN.iter();
    let is_free =
        !taken.any(|taken| Path::new(taken).starts_with(around) || around.starts_with(taken));
    is_free.then(|| around.to_owned())
}

/// The paths that a check looks at. The program of `exec` is the image's.
fn looked_at(handler: &ProbeHandler) -> Vec<&Path> {
    match handler {
        ProbeHandler::CniConfig(cni) => {
            let programs = cni.bin_dirs.iter();
            programs.chain([&cni.dir]).map(PathBuf::as_path).collect()
        }
        ProbeHandler::HttpGet(HttpGet { endpoint, .. })
        | ProbeHandler::Grpc(Grpc { endpoint, .. }) => match endpoint {
            Endpoint::Unix { path } => vec![path],
            Endpoint::Tcp { .. } => Vec::new(),
        },
        ProbeHandler::File(file) => vec![&file.path],
        ProbeHandler::TcpSocket(_) | ProbeHandler::Exec(_) => Vec::new(),
    }
}
