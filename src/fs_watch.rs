//! Wakes the reader of a path when the path may have changed. Each reader also polls, so a watch that is refused, or that
//! misses an event, only costs a period.

mod concern;
mod placed;

use std::future::pending;
use std::path::Path;

use tokio::task::JoinHandle;
use tracing::warn;

use crate::blocking::{FILE_WATCHES, joined};
use concern::{Scope, Target};
use placed::Placed;

/// Watches a file, or a directory and its entries, also while it does not exist. Dropping it ends the watch.
#[derive(Debug)]
pub struct FsWatch {
    target: Target,
    state: State,
    /// Whether it has logged that watches are refused.
    warned: bool,
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

impl FsWatch {
    /// Watches `path` from the first call of [`Self::changed`].
    pub fn new(path: &Path) -> Self {
        let target = Target {
            path: std::path::absolute(path).unwrap_or_else(|_| path.to_owned()),
            scope: Scope::Path,
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
        watch.target.scope = Scope::Siblings;
        watch
    }

    /// The same for a directory and the directories in it, one level deep.
    pub fn with_directories(path: &Path) -> Self {
        let mut watch = Self::new(path);
        watch.target.scope = Scope::Directories;
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
                State::Unplaced => self.place().await,
                State::Watching(placed) if placed.is_outdated() => self.place().await,
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
                    if placed.changes.changed().await.is_err() {
                        // The thread of notify has ended: the program is about to end.
                        return pending().await;
                    }
                    if placed.changes.borrow().moved {
                        self.state = State::Unplaced;
                    }
                    return;
                }
                State::Refused => return pending().await,
            }
        }
    }

    /// Begins to place the watches, or those of the directories in the path if the others are in place.
    async fn place(&mut self) {
        let permit = FILE_WATCHES.permit(self.target.path.as_os_str()).await;
        let target = self.target.clone();
        let task = match std::mem::replace(&mut self.state, State::Unplaced) {
            State::Watching(placed) => permit.spawn(move || Ok(placed.with_directories(&target))),
            _ => permit.spawn(move || Placed::new(&target)),
        };
        self.state = State::Placing(task);
    }
}

#[cfg(test)]
mod tests;
