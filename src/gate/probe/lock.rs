//! One evaluation of a probe at a time, even if the one before hangs, and what the evaluations have seen.

use std::ffi::OsStr;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Mutex, OwnedMutexGuard};
use tokio::time::timeout;

use super::sightings::Sightings;
use crate::blocking::GATES;

/// How long an evaluation waits for the one before, which may be about to end.
const PATIENCE: Duration = Duration::from_millis(100);

/// Shared by all evaluations of one probe, so that a probe that hangs holds one thread or process, and not one for each
/// evaluation.
#[derive(Debug, Clone, Default)]
pub struct ProbeLock(Arc<Mutex<Sightings>>);

/// Held until the last thread and process of an evaluation is gone.
pub(super) type ProbeLockGuard = OwnedMutexGuard<Sightings>;

impl ProbeLock {
    /// Does `work`, which may hang at `place`, on a thread of its own. `None` if the last evaluation still has a thread or a
    /// process. Safe to cancel: work that has begun goes on alone.
    pub(super) async fn run_blocking<T: Send + 'static>(
        &self,
        place: &OsStr,
        work: impl FnOnce(ProbeLockGuard) -> T + Send + 'static,
    ) -> Option<T> {
        let guard = self.acquire().await?;
        Some(GATES.run(place, move || work(guard)).await)
    }

    /// `None` if the last evaluation still has a thread or a process.
    pub(super) async fn acquire(&self) -> Option<ProbeLockGuard> {
        let guard = timeout(PATIENCE, Arc::clone(&self.0).lock_owned());
        guard.await.ok()
    }
}
