//! Background work without a task of its own.

use std::convert::Infallible;
use std::future::{Future, pending};

/// Polls `background` for as long as `main` takes. Both are part of the caller's future and end when it is dropped,
/// which a spawned task would not. The end of `background` is not the end of `main`.
pub(super) async fn while_driving<T>(background: impl Future, main: impl Future<Output = T>) -> T {
    let background = async {
        background.await;
        pending::<Infallible>().await
    };
    tokio::select! {
        biased;
        result = main => result,
        never = background => match never {},
    }
}
