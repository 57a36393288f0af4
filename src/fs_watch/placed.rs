//! The watches of one path.

use std::fs;
use std::io::ErrorKind::{NotADirectory, NotFound};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use notify::{ErrorKind, Event, RecommendedWatcher, RecursiveMode, Watcher};
use tokio::sync::watch;
use tracing::debug;

use super::concern::{Concern, Scope, Target, concern};

/// The directories in a watched directory that are watched too. A reader finds changes in more of them once a period.
pub(super) const MAX_DIRECTORIES: usize = 32;

/// An inotify instance and its watches.
#[derive(Debug)]
pub(super) struct Placed {
    pub(super) watcher: RecommendedWatcher,
    /// Changes with each event that concerns the path.
    pub(super) changes: watch::Receiver<Changes>,
    /// The inodes that are watched, by device and number. A second watch of an inode would take the first one's place.
    inodes: Vec<(u64, u64)>,
    /// The directories in the path that are watched, with their inodes.
    directories: Vec<(PathBuf, (u64, u64))>,
    /// [`Changes::directories`] before they were watched.
    seen_directories: u64,
}

#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Changes {
    /// Whether the watches may be in the wrong places: a watch stays with its inode when the name moves.
    pub(super) moved: bool,
    /// How often a directory in the path, or a link to one, may have come, gone or been renamed.
    directories: u64,
}

impl Placed {
    /// Watches the nearest ancestor of the path that exists, the path itself if it does, and what else its [`Scope`] has.
    pub(super) fn new(target: &Target) -> notify::Result<Self> {
        let (sender, changes) = watch::channel(Changes::default());
        let watcher = notify::recommended_watcher({
            let target = target.clone();
            move |event: notify::Result<Event>| match concern(&target, event.as_ref().ok()) {
                Concern::None => {}
                Concern::Content => sender.send_modify(|_| {}),
                Concern::Directories => sender.send_modify(|changes| changes.directories += 1),
                Concern::Place => sender.send_modify(|changes| changes.moved = true),
            }
        })?;
        let mut placed = Self {
            watcher,
            changes,
            inodes: Vec::new(),
            directories: Vec::new(),
            seen_directories: 0,
        };
        let mut below = vec![target.path.as_path()];
        for ancestor in target.path.ancestors().skip(1) {
            if placed.watch(ancestor)? {
                break;
            }
            below.push(ancestor);
        }
        // Downwards again: a level that appeared before its parent was watched raised no event.
        while let Some(level) = below.pop()
            && placed.watch(level)?
        {}
        placed.watch_links(&target.path);
        Ok(placed.with_directories(target))
    }

    /// Watches where the links are that the path goes through: the path leads elsewhere when one of them changes.
    fn watch_links(&mut self, path: &Path) {
        for ancestor in path.ancestors().skip(1) {
            if let Some(parent) = ancestor.parent()
                && ancestor.is_symlink()
            {
                self.watch_also(parent);
            }
        }
    }

    /// Watches the directories in the path as they are now, if the target has them.
    pub(super) fn with_directories(mut self, target: &Target) -> Self {
        if target.scope != Scope::Directories {
            return self;
        }
        self.seen_directories = self.changes.borrow().directories;
        for (directory, inode) in std::mem::take(&mut self.directories) {
            // The watch may have ended with its inode.
            let _ = self.watcher.unwatch(&directory);
            self.inodes.retain(|known| *known != inode);
        }
        let entries = fs::read_dir(&target.path).into_iter().flatten().flatten();
        let is_link_or_directory = |entry: &fs::DirEntry| {
            let kind = entry.file_type();
            kind.is_ok_and(|kind| kind.is_dir() || kind.is_symlink())
        };
        let paths = entries
            .filter(is_link_or_directory)
            .map(|entry| entry.path());
        for path in paths.filter(|path| path.is_dir()).take(MAX_DIRECTORIES) {
            if let Some(inode) = self.watch_also(&path) {
                self.directories.push((path, inode));
            }
        }
        self
    }

    /// Whether directories in the path came or went since they were watched.
    pub(super) fn is_outdated(&self) -> bool {
        self.changes.borrow().directories != self.seen_directories
    }

    #[cfg(test)]
    pub(super) fn directories(&self) -> usize {
        self.directories.len()
    }

    /// Watches an inode that is not watched yet, and returns it. A refusal only costs a period.
    fn watch_also(&mut self, path: &Path) -> Option<(u64, u64)> {
        let inode = inode(path).filter(|inode| !self.inodes.contains(inode))?;
        match self.watch(path) {
            Ok(is_watched) => is_watched.then_some(inode),
            Err(error) => {
                debug!(%error, path = %path.display(), "cannot watch this path for changes");
                None
            }
        }
    }

    /// Whether there was something to watch.
    fn watch(&mut self, path: &Path) -> notify::Result<bool> {
        match self.watcher.watch(path, RecursiveMode::NonRecursive) {
            Ok(()) => {
                self.inodes.extend(inode(path));
                Ok(true)
            }
            Err(error) => match &error.kind {
                ErrorKind::PathNotFound => Ok(false),
                ErrorKind::Io(io) if matches!(io.kind(), NotFound | NotADirectory) => Ok(false),
                _ => Err(error),
            },
        }
    }
}

fn inode(path: &Path) -> Option<(u64, u64)> {
    let metadata = fs::metadata(path).ok()?;
    Some((metadata.dev(), metadata.ino()))
}
