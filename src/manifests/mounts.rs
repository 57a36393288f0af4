//! Which directories of the host the gates look at.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use thiserror::Error;

use super::Manifests;
use super::pieces::CONFIG_DIRECTORY;
use crate::config::{Check, Condition, Endpoint, Grpc, HttpGet};

/// A container has its own, which show the same.
const THERE_ALREADY: [&str; 2] = ["/proc", "/sys"];

/// What Kubernetes and the manifests mount themselves, which does not work within a volume that is read-only; and the files
/// of the image, where no directory can be mounted.
const TAKEN: [&str; 4] = [
    CONFIG_DIRECTORY,
    "/var/run/secrets/kubernetes.io",
    "/untaint",
    "/LICENSE",
];

/// A path that no volume can make visible.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error(
    "gate {gate}: {} cannot be made visible in a pod: the directory around it would be mounted where the pod has other things that it needs; move it into a directory of its own",
    path.display()
)]
pub struct MountError {
    gate: String,
    path: PathBuf,
}

/// The directories to mount, in order, none within another.
pub(super) fn directories(manifests: &Manifests) -> Result<BTreeSet<PathBuf>, MountError> {
    let mut directories = BTreeSet::new();
    for condition in manifests.conditions() {
        let Condition::Probe(probe) = condition else {
            continue;
        };
        for path in looked_at(&probe.check) {
            if THERE_ALREADY.iter().any(|own| path.starts_with(own)) {
                continue;
            }
            directories.insert(around(path).ok_or_else(|| MountError {
                gate: probe.name.clone(),
                path: path.to_owned(),
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
fn looked_at(check: &Check) -> Vec<&Path> {
    match check {
        Check::CniConfig(cni) => {
            let programs = cni.bin_dirs.iter();
            programs.chain([&cni.dir]).map(PathBuf::as_path).collect()
        }
        Check::HttpGet(HttpGet { endpoint, .. }) | Check::Grpc(Grpc { endpoint, .. }) => {
            match endpoint {
                Endpoint::Unix { path } => vec![path],
                Endpoint::Tcp { .. } => Vec::new(),
            }
        }
        Check::File(file) => vec![&file.path],
        Check::TcpSocket(_) | Check::Exec(_) => Vec::new(),
    }
}
