//! Bind mounts of deleted files and directories. A mount keeps the inode: it shows the deleted one forever, and never what is
//! created later under the same name. Mounts with `subPath` are such mounts.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// No directory of the host can be mounted at these paths of a pod, around them or below them.
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

/// Whether a pod of untaint can mount this directory of the host at the same path.
pub(crate) fn can_be_mounted(directory: &Path) -> bool {
    let is_taken =
        |taken: &str| Path::new(taken).starts_with(directory) || directory.starts_with(taken);
    !PATHS_OF_POD.into_iter().any(is_taken)
}

/// The reason if `path` exists but was deleted. Completes a sentence that begins with the path. May hang.
pub(crate) fn deleted(path: &Path) -> Option<String> {
    is_deleted(path).then(|| reason(path.parent()))
}

/// The same for the directory that the manifests mount, because something in it is looked for.
pub(crate) fn deleted_around(directory: &Path) -> Option<String> {
    is_deleted(directory).then(|| reason(None))
}

fn is_deleted(path: &Path) -> bool {
    let Ok(metadata) = fs::metadata(path) else {
        return false;
    };
    // Some file systems in user space count no links at all.
    let counts_links = || {
        fs::metadata(path.parent().unwrap_or(path))
            .is_ok_and(|of_parent| of_parent.nlink() > 0 || of_parent.dev() != metadata.dev())
    };
    metadata.nlink() == 0 && counts_links()
}

/// `instead`: the directory to mount instead of the deleted one, if that is possible.
fn reason(instead: Option<&Path>) -> String {
    let mut reason = "was deleted on the host, but a mount still shows the deleted one: delete the pod, and its DaemonSet \
                      creates it again"
        .to_owned();
    if let Some(instead) = instead.filter(|instead| can_be_mounted(instead)) {
        let prevention = format!(
            "; to prevent this, mount the parent directory {} instead",
            instead.display()
        );
        reason.push_str(&prevention);
    }
    reason
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `untaint manifests` mounts none of these parents.
    #[test]
    fn a_parent_is_advised_only_where_it_can_be_mounted() {
        for (path, advised) in [
            ("/run/a/ready", Some("/run/a")),
            ("/run/ready.sock", Some("/run")),
            ("/etc/cni/net.d", Some("/etc/cni")),
            ("/etc/untaint.d/config.yaml", Some("/etc/untaint.d")),
            ("/etc/cni", None),
            ("/etc/ready", None),
            ("/ready", None),
            ("/", None),
            ("/dev/nvidia0", None),
            ("/var/run", None),
            ("/var/run/a.sock", None),
            ("/var/run/secrets/a", None),
            ("/untaint/ready", None),
        ] {
            let reason = reason(Path::new(path).parent());
            let advice = reason.split_once("mount the parent directory ");
            let advice = advice.and_then(|(_, rest)| rest.strip_suffix(" instead"));
            assert_eq!(advice, advised, "{path}: {reason}");
        }
    }
}
