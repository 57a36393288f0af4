//! Bind mounts of deleted files and directories. A mount keeps the inode: it shows the deleted one forever, and never what is
//! created later under the same name. Mounts with `subPath` are such mounts.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Where the manifests mount the configuration.
pub(crate) const CONFIGURATION: &str = "/etc/untaint";

/// No directory of the host can be mounted at these paths of a pod, around them or below them.
const PATHS_OF_POD: [&str; 5] = [
    CONFIGURATION,
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
    is_deleted(path).then(|| reason(path.parent().filter(|parent| can_be_mounted(parent))))
}

/// The same for a file of the configuration, whose volume can be mounted where the manifests mount it.
pub(crate) fn deleted_configuration(path: &Path) -> Option<String> {
    is_deleted(path).then(|| reason(around_configuration(path)))
}

/// The same for the directory that the manifests mount, because something in it is looked for.
pub(crate) fn deleted_around(directory: &Path) -> Option<String> {
    is_deleted(directory).then(|| reason(None))
}

fn around_configuration(path: &Path) -> Option<&Path> {
    let parent = path.parent()?;
    (parent.starts_with(CONFIGURATION) || can_be_mounted(parent)).then_some(parent)
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

/// `instead`: the directory to mount instead, if that is possible.
fn reason(instead: Option<&Path>) -> String {
    let mut reason = "was deleted on the host, but a mount still shows the deleted one: delete the pod, and its DaemonSet \
                      creates it again"
        .to_owned();
    if let Some(instead) = instead {
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

    /// `untaint manifests` refuses to mount the others.
    #[test]
    fn a_parent_is_advised_only_where_it_can_be_mounted() {
        for (directory, of_host, of_configuration) in [
            ("/run/a", true, true),
            ("/run", true, true),
            ("/etc/cni", true, true),
            ("/etc/untaint.d", true, true),
            ("/etc/untaint", false, true),
            ("/etc/untaint/a", false, true),
            ("/etc", false, false),
            ("/", false, false),
            ("/dev", false, false),
            ("/var", false, false),
            ("/var/run", false, false),
            ("/var/run/secrets", false, false),
            ("/untaint", false, false),
        ] {
            let directory = Path::new(directory);
            assert_eq!(can_be_mounted(directory), of_host, "{directory:?}");
            let file = directory.join("config.yaml");
            let expected = of_configuration.then_some(directory);
            assert_eq!(around_configuration(&file), expected);
        }
    }
}
