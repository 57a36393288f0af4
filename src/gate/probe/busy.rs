//! One evaluation of a condition at a time, whatever became of the one before.

use std::ffi::OsStr;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Mutex, OwnedMutexGuard};
use tokio::time::timeout;

use crate::blocking::{Places, joined};

/// How long an evaluation waits for what is left of the one before: what has just been ended is about to go.
const PATIENCE: Duration = Duration::from_millis(100);

/// Paths and names that gates ask for. Of all gates together: a gate that a reload replaces may have left a thread.
static PLACES: Places = Places::new();

/// Shared by the evaluations of one condition, from round to round, so that what hangs holds one thread or process and
/// not one an evaluation.
#[derive(Debug, Clone, Default)]
pub struct Busy(Arc<Mutex<()>>);

/// Held until the last of an evaluation is gone.
pub(super) type Hold = OwnedMutexGuard<()>;

impl Busy {
    /// Does `work`, which may hang at `place`, on a thread of its own. `None`: something of the last evaluation is still
    /// there. Safe to cancel: the work goes on alone.
    pub(super) async fn work<T: Send + 'static>(
        &self,
        place: &OsStr,
        work: impl FnOnce(Hold) -> T + Send + 'static,
    ) -> Option<T> {
        let hold = self.hold().await?;
        let entry = PLACES.enter(place).await;
        Some(joined(&mut entry.spawn(move || work(hold))).await)
    }

    /// `None`: something of the last evaluation is still there.
    pub(super) async fn hold(&self) -> Option<Hold> {
        timeout(PATIENCE, Arc::clone(&self.0).lock_owned())
            .await
            .ok()
    }
}
