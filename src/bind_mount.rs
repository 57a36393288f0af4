//! Bind mounts of deleted files and directories. A mount keeps the inode: it shows the deleted one forever, and never what is
//! created later under the same name. Mounts with `subPath` are such mounts.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// The reason if `path` exists but was deleted. Completes a sentence that begins with the path. May hang.
pub(crate) fn deleted(path: &Path) -> Option<String> {
    let metadata = fs::metadata(path).ok()?;
    let parent = path.parent().unwrap_or(path);
    // Some file systems in user space count no links at all.
    let counts_links = || {
        fs::metadata(parent)
            .is_ok_and(|of_parent| of_parent.nlink() > 0 || of_parent.dev() != metadata.dev())
    };
    (metadata.nlink() == 0 && counts_links()).then(|| {
        let parent = parent.display();
        format!(
            "was deleted on the host, but a mount still shows the deleted one: mount its parent directory {parent}"
        )
    })
}
