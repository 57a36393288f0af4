//! Wakes whoever reads a path when it may have changed. Each has a poll of its own behind it, so a watch that is
//! refused, or that misses something, costs a period and nothing else.

use std::future::pending;
use std::io;
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
    /// Whether it has been told that watches are refused.
    warned: bool,
}

/// What is watched.
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
    /// On a blocking thread, as a file system that hangs also hangs whoever wants to watch it.
    Placing(JoinHandle<notify::Result<Placed>>),
    Watching(Placed),
    Refused,
}

/// An inotify instance and its watches.
#[derive(Debug)]
struct Placed {
    watcher: RecommendedWatcher,
    /// Changes with each event that concerns the path, and becomes true with one after which the watches may be in
    /// the wrong places: a watch stays with its inode, whatever becomes of the name.
    moved: watch::Receiver<bool>,
}

impl FsWatch {
    /// Watches `path` from the first call of [`Self::changed`].
    pub fn new(path: &Path) -> Self {
        Self::of(path, false)
    }

    /// The same for a file that may be reached through links beside it: in a mounted ConfigMap `FILE` is a link to
    /// `..data/FILE`, and what changes is `..data`.
    pub fn through_siblings(path: &Path) -> Self {
        Self::of(path, true)
    }

    fn of(path: &Path, through_siblings: bool) -> Self {
        let target = Target {
            path: std::path::absolute(path).unwrap_or_else(|_| path.to_owned()),
            through_siblings,
        };
        Self {
            target,
            state: State::Unplaced,
            warned: false,
        }
    }

    /// Tries again where watches were refused. For who polls rarely: each try costs a thread and an inotify instance.
    pub fn retry(&mut self) {
        if matches!(self.state, State::Refused) {
            self.state = State::Unplaced;
        }
    }

    /// Completes when the path may have changed since the last time, and once whenever the watch is in place.
    ///
    /// Events coalesce, and none that comes between two calls is lost. An event after which the watch has to be placed
    /// again completes it at once: placing may take as long as the file system wants. Safe to cancel. Where watches are
    /// refused (no inotify instances left, a security module) it warns once and does not complete any more.
    pub async fn changed(&mut self) {
        loop {
            match &mut self.state {
                State::Unplaced => {
                    let permit = FILE_WATCHES.permit(self.target.path.as_os_str()).await;
                    let target = self.target.clone();
                    self.state = State::Placing(permit.spawn(move || Placed::new(&target)));
                }
                State::Placing(task) => {
                    self.state = joined(task).await.map_or_else(
                        |error| {
                            if !std::mem::replace(&mut self.warned, true) {
                                warn!(%error, path = %self.target.path.display(), "could not watch, polling only");
                            }
                            State::Refused
                        },
                        State::Watching,
                    );
                    // What happened before the watches were in place raised no event.
                    return;
                }
                State::Watching(placed) => {
                    if placed.moved.changed().await.is_err() {
                        // notify's thread has ended: the program is about to.
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
        let levels: Vec<&Path> = target.path.ancestors().collect();
        let mut nearest = levels.len();
        for (level, ancestor) in levels.iter().enumerate().skip(1) {
            if placed.watch(ancestor)? {
                nearest = level;
                break;
            }
        }
        // Downwards again: a level that appeared before its parent was watched raised no event.
        for level in levels[..nearest].iter().rev() {
            if !placed.watch(level)? {
                break;
            }
        }
        Ok(placed)
    }

    /// Whether there was something to watch.
    fn watch(&mut self, path: &Path) -> notify::Result<bool> {
        match self.watcher.watch(path, RecursiveMode::NonRecursive) {
            Ok(()) => Ok(true),
            Err(error) if is_absence(&error.kind) => Ok(false),
            Err(error) => Err(error),
        }
    }
}

fn is_absence(error: &ErrorKind) -> bool {
    match error {
        ErrorKind::PathNotFound => true,
        ErrorKind::Io(error) => matches!(
            error.kind(),
            io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
        ),
        _ => false,
    }
}

/// What an event means for what is watched.
#[derive(Debug, PartialEq, Eq)]
enum Concern {
    None,
    /// It may read differently now.
    Content,
    /// It or one of its ancestors came, went or was renamed, or a link that leads to it may have been.
    Place,
}

/// `None` is an error of notify's, after which anything may have been missed.
fn concern(target: &Target, event: Option<&Event>) -> Concern {
    let path = target.path.as_path();
    let Some(event) = event.filter(|event| !event.need_rescan()) else {
        return Concern::Place;
    };
    let is_entry = |touched: &PathBuf| touched != path && touched.starts_with(path);
    let is_path = |touched: &PathBuf| path.starts_with(touched);
    // What is written into a sibling does not change where the path leads.
    let is_sibling =
        |touched: &PathBuf| target.through_siblings && touched.parent() == path.parent();
    let is_written = matches!(
        event.kind,
        EventKind::Modify(ModifyKind::Data(_) | ModifyKind::Metadata(_))
    );
    let touches = |is_it: &dyn Fn(&PathBuf) -> bool| event.paths.iter().any(is_it);
    match event.kind {
        // notify always asks for opens and closes. Those are our own reads, and the runtime's.
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
