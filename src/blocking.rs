//! Work on a thread of its own, for what may hang.

use std::future::pending;
use std::panic::resume_unwind;

use tokio::task::JoinHandle;

/// What a thread came to; not at all while the runtime shuts down. A panic goes on here. Safe to cancel and call again.
pub(crate) async fn joined<T>(task: &mut JoinHandle<T>) -> T {
    match task.await {
        Ok(result) => result,
        Err(error) => match error.try_into_panic() {
            Ok(panic) => resume_unwind(panic),
            Err(_) => pending().await,
        },
    }
}
