//! Background work without a spawned task.

use std::future::{Future, pending};

/// Polls `background` until `main` ends. Unlike a spawned task, both end when the caller's future is dropped. `main` goes
/// on after the end of `background`.
pub(super) async fn while_driving<T>(background: impl Future, main: impl Future<Output = T>) -> T {
    let background = async {
        background.await;
        pending().await
    };
    tokio::select! {
        biased;
        result = main => result,
        result = background => result,
    }
}
