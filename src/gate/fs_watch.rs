//! Wakes a gate early when a path may have changed. The gate's own period is the poll behind it, so a watch that
//! is refused, or that misses something, costs a period and nothing else.

use std::future::pending;
use std::io;
use std::path::{Path, PathBuf};

use notify::event::ModifyKind;
use notify::{ErrorKind, Event, EventKind, RecommendedWatcher, RecursiveMode, Watcher};
use tokio::sync::watch;
use tokio::task::{JoinHandle, spawn_blocking};
use tracing::warn;

/// Watches a file, or a directory and its entries, also while it does not exist. Dropping it ends the watch.
#[derive(Debug)]
pub struct FsWatch {
    path: PathBuf,
    /// Changes with each event that concerns the path; its value counts those after which the watches may be in
    /// the wrong places.
    moves: watch::Receiver<u64>,
    /// The value of `moves` that the present watches take into account.
    placed_at: u64,
    state: State,
}

#[derive(Debug)]
enum State {
    /// On a blocking thread, as a file system that hangs also hangs whoever wants to watch it.
    Placing(JoinHandle<notify::Result<Watches>>),
    Watching(Watches),
    Refused,
}

#[derive(Debug)]
struct Watches {
    watcher: RecommendedWatcher,
    placed: Vec<PathBuf>,
}

impl FsWatch {
    /// Begins to watch `path`. To be called on the runtime.
    #[must_use]
    pub fn new(path: &Path) -> Self {
        let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        let (sender, moves) = watch::channel(0);
        let state = State::Placing(spawn_blocking({
            let path = path.clone();
            move || Watches::new(&path, sender)
        }));
        Self {
            path,
            moves,
            placed_at: 0,
            state,
        }
    }

    /// Completes when the path may have changed since the last time, and once when the watch is in place.
    ///
    /// Events coalesce, and none that comes between two calls is lost. Safe to cancel. Where watches are refused
    /// (no inotify instances left, a security module) it warns once and does not complete any more.
    pub async fn changed(&mut self) {
        loop {
            match &mut self.state {
                State::Placing(task) => {
                    let placed = match task.await {
                        Ok(placed) => placed,
                        Err(error) => match error.try_into_panic() {
                            Ok(panic) => std::panic::resume_unwind(panic),
                            // The runtime is shutting down.
                            Err(_) => return pending().await,
                        },
                    };
                    self.state = placed.map_or_else(
                        |error| {
                            warn!(%error, path = %self.path.display(), "could not watch, polling only");
                            State::Refused
                        },
                        State::Watching,
                    );
                    // What happened before the watches were in place raised no event.
                    return;
                }
                State::Watching(_) => {
                    if self.moves.changed().await.is_err() {
                        // notify's thread has ended.
                        self.state = State::Refused;
                    } else if *self.moves.borrow() == self.placed_at {
                        return;
                    } else {
                        self.place_again();
                    }
                }
                State::Refused => return pending().await,
            }
        }
    }

    fn place_again(&mut self) {
        if let State::Watching(mut watches) = std::mem::replace(&mut self.state, State::Refused) {
            let path = self.path.clone();
            self.placed_at = *self.moves.borrow_and_update();
            self.state = State::Placing(spawn_blocking(move || {
                watches.place(&path)?;
                Ok(watches)
            }));
        }
    }
}

impl Watches {
    fn new(path: &Path, sender: watch::Sender<u64>) -> notify::Result<Self> {
        let watcher = notify::recommended_watcher({
            let path = path.to_owned();
            move |event: notify::Result<Event>| match concern(&path, event.as_ref().ok()) {
                Concern::None => {}
                Concern::Content => sender.send_modify(|_| {}),
                Concern::Place => sender.send_modify(|moves| *moves = moves.wrapping_add(1)),
            }
        })?;
        let mut placed = Self {
            watcher,
            placed: Vec::new(),
        };
        placed.place(path)?;
        Ok(placed)
    }

    /// Watches the nearest ancestor that exists, and `path` itself if it does.
    ///
    /// Downwards, so that whatever appears after its parent was watched raises an event. All of it anew each time:
    /// a watch stays with its inode, whatever becomes of the name.
    fn place(&mut self, path: &Path) -> notify::Result<()> {
        for old in self.placed.drain(..) {
            // Fails for what was deleted: that watch is gone already.
            _ = self.watcher.unwatch(&old);
        }
        let levels: Vec<&Path> = path.ancestors().collect();
        let mut nearest = levels.len();
        for (level, ancestor) in levels.iter().enumerate().skip(1) {
            if self.watch(ancestor)? {
                nearest = level;
                break;
            }
        }
        for level in levels[..nearest].iter().rev() {
            if !self.watch(level)? {
                break;
            }
        }
        Ok(())
    }

    /// Whether there was something to watch.
    fn watch(&mut self, path: &Path) -> notify::Result<bool> {
        match self.watcher.watch(path, RecursiveMode::NonRecursive) {
            Ok(()) => {
                self.placed.push(path.to_owned());
                Ok(true)
            }
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

/// What an event means for a path.
#[derive(Debug, PartialEq, Eq)]
enum Concern {
    None,
    /// It may read differently now.
    Content,
    /// It or one of its ancestors came, went or was renamed.
    Place,
}

/// `None` is an error of notify's, after which anything may have been missed.
fn concern(path: &Path, event: Option<&Event>) -> Concern {
    let Some(event) = event.filter(|event| !event.need_rescan()) else {
        return Concern::Place;
    };
    let is_entry = |touched: &PathBuf| touched != path && touched.starts_with(path);
    let is_path = |touched: &PathBuf| path.starts_with(touched);
    match event.kind {
        // notify always asks for opens and closes. Those are our own reads, and the runtime's.
        EventKind::Access(_) => Concern::None,
        EventKind::Modify(ModifyKind::Data(_) | ModifyKind::Metadata(_))
            if event.paths.iter().any(is_path) =>
        {
            Concern::Content
        }
        _ if event.paths.iter().any(is_path) => Concern::Place,
        _ if event.paths.iter().any(is_entry) => Concern::Content,
        _ => Concern::None,
    }
}

#[cfg(test)]
#[path = "fs_watch_tests.rs"]
mod tests;
