//! Wakes the reader of a path when the path may have changed. Each reader also polls, so a watch that is refused, or that
//! misses an event, only costs a period.

use std::future::pending;
use std::io::ErrorKind::{NotADirectory, NotFound};
use std::path::{Path, PathBuf};

use notify::event::ModifyKind;
use notify::{ErrorKind, Event, EventKind, RecommendedWatcher, RecursiveMode, Watcher};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tracing::warn;

use crate::blocking::{FILE_WATCHES, joined};

/// Watches a file, or a directory and its entries, also while it does not exist. Dropping it ends the watch.
#[derive(Debug)]
pub struct FsWatch {
    target: Target,
    state: State,
    /// Whether it has logged that watches are refused.
    warned: bool,
}

#[derive(Debug, Clone)]
struct Target {
    path: PathBuf,
    /// Whether the path may read differently after another entry of its directory came, went or was renamed.
    through_siblings: bool,
}

#[derive(Debug)]
enum State {
    /// Not watched yet, or at the wrong places.
    Unplaced,
    /// On a thread of its own: a file system that hangs also blocks the call that watches it.
    Placing(JoinHandle<notify::Result<Placed>>),
    Watching(Placed),
    Refused,
}

/// An inotify instance and its watches.
#[derive(Debug)]
struct Placed {
    watcher: RecommendedWatcher,
    /// Changes with each event that concerns the path. Becomes true when the watches may be in the wrong places: a watch
    /// stays with its inode when the name moves.
    moved: watch::Receiver<bool>,
}

impl FsWatch {
    /// Watches `path` from the first call of [`Self::changed`].
    pub fn new(path: &Path) -> Self {
        let target = Target {
            path: std::path::absolute(path).unwrap_or_else(|_| path.to_owned()),
            through_siblings: false,
        };
        Self {
            target,
            state: State::Unplaced,
            warned: false,
        }
    }

    /// The same for a file or directory that may be reached through links beside it: in a mounted ConfigMap `FILE` is a
    /// link to `..data/FILE`, and what changes is `..data`.
    pub fn through_siblings(path: &Path) -> Self {
        let mut watch = Self::new(path);
        watch.target.through_siblings = true;
        watch
    }

    /// Tries again where watches were refused. Only for rare polls: each try costs a thread and an inotify instance.
    pub fn retry(&mut self) {
        if matches!(self.state, State::Refused) {
            self.state = State::Unplaced;
        }
    }

    /// Completes when the path may have changed since the last call, and whenever the watch has been placed.
    ///
    /// Events coalesce, and none between two calls is lost. An event after which the watch must be placed again completes
    /// this first, because placing may take long. Safe to cancel. Where watches are refused (no inotify instances left, a
    /// security module), this warns once and does not complete any more.
    pub async fn changed(&mut self) {
        loop {
            match &mut self.state {
                State::Unplaced => {
                    let permit = FILE_WATCHES.permit(self.target.path.as_os_str()).await;
                    let target = self.target.clone();
                    self.state = State::Placing(permit.spawn(move || Placed::new(&target)));
                }
                State::Placing(task) => {
                    self.state = match joined(task).await {
                        Ok(placed) => State::Watching(placed),
                        Err(error) => {
                            if !std::mem::replace(&mut self.warned, true) {
                                let path = self.target.path.display();
                                warn!(%error, %path, "cannot watch this path for changes; checking it only once a period");
                            }
                            State::Refused
                        }
                    };
                    // What happened before the watches were in place raised no event.
                    return;
                }
                State::Watching(placed) => {
                    if placed.moved.changed().await.is_err() {
                        // The thread of notify has ended: the program is about to end.
                        return pending().await;
                    }
                    if *placed.moved.borrow() {
                        self.state = State::Unplaced;
                    }
                    return;
                }
                State::Refused => return pending().await,
            }
        }
    }
}

impl Placed {
    /// Watches the nearest ancestor of the path that exists, and the path itself if it does.
    fn new(target: &Target) -> notify::Result<Self> {
        let (sender, moved) = watch::channel(false);
        let watcher = notify::recommended_watcher({
            let target = target.clone();
            move |event: notify::Result<Event>| match concern(&target, event.as_ref().ok()) {
                Concern::None => {}
                Concern::Content => sender.send_modify(|_| {}),
                Concern::Place => sender.send_modify(|moved| *moved = true),
            }
        })?;
        let mut placed = Self { watcher, moved };
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
        Ok(placed)
    }

    /// Whether there was something to watch.
    fn watch(&mut self, path: &Path) -> notify::Result<bool> {
        match self.watcher.watch(path, RecursiveMode::NonRecursive) {
            Ok(()) => Ok(true),
            Err(error) => match &error.kind {
                ErrorKind::PathNotFound => Ok(false),
                ErrorKind::Io(io) if matches!(io.kind(), NotFound | NotADirectory) => Ok(false),
                _ => Err(error),
            },
        }
    }
}

/// What an event means for the watched path.
#[derive(Debug, PartialEq, Eq)]
enum Concern {
    None,
    /// It may read differently now.
    Content,
    /// It or one of its ancestors came, went or was renamed, or a link that leads to it may have been.
    Place,
}

/// `None` is an error of notify, after which any event may have been missed.
fn concern(target: &Target, event: Option<&Event>) -> Concern {
    let path = target.path.as_path();
    let Some(event) = event.filter(|event| !event.need_rescan()) else {
        return Concern::Place;
    };
    let is_entry = |touched: &PathBuf| touched != path && touched.starts_with(path);
    let is_path = |touched: &PathBuf| path.starts_with(touched);
    // A write into a sibling does not change where the path leads.
    let is_sibling =
        |touched: &PathBuf| target.through_siblings && touched.parent() == path.parent();
    let is_written = matches!(
        event.kind,
        EventKind::Modify(ModifyKind::Data(_) | ModifyKind::Metadata(_))
    );
    let touches = |is_it: &dyn Fn(&PathBuf) -> bool| event.paths.iter().any(is_it);
    match event.kind {
        // Opens and closes, which notify always asks for: reads of the agent and of the container runtime.
        EventKind::Access(_) => Concern::None,
        _ if touches(&is_path) && is_written => Concern::Content,
        _ if touches(&is_path) => Concern::Place,
        _ if touches(&is_entry) => Concern::Content,
        _ if touches(&is_sibling) && !is_written => Concern::Place,
        _ => Concern::None,
    }
}

#[cfg(test)]
mod tests;
