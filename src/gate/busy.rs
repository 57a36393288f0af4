//! One evaluation of a condition at a time, whatever became of the one before.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Mutex, OwnedMutexGuard};
use tokio::time::timeout;

/// How long an evaluation waits for what is left of the one before: what has just been ended is about to go.
const PATIENCE: Duration = Duration::from_millis(100);

/// Shared by the evaluations of one condition, from round to round, so that what hangs holds one thread or process and
/// not one an evaluation.
#[derive(Debug, Clone, Default)]
pub struct Busy(Arc<Mutex<()>>);

/// Held until the last of an evaluation is gone.
pub(super) type Hold = OwnedMutexGuard<()>;

impl Busy {
    /// `None`: something of the last evaluation is still there.
    pub(super) async fn hold(&self) -> Option<Hold> {
        timeout(PATIENCE, Arc::clone(&self.0).lock_owned())
            .await
            .ok()
    }
}
