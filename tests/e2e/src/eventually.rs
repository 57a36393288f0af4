//! Waits for what sends no events.

use std::time::Duration;

use anyhow::{Context as _, Result};
use tokio::time::{sleep, timeout};

use crate::timeline::DEADLINE;

/// The interval between two looks.
const POLL: Duration = Duration::from_millis(10);

/// Looks until `find` finds something.
pub(crate) async fn eventually<T>(what: &str, find: impl Fn() -> Option<T>) -> Result<T> {
    eventually_async(what, async || find()).await
}

/// The same for a question that takes time.
pub(crate) async fn eventually_async<T>(
    what: &str,
    find: impl AsyncFn() -> Option<T>,
) -> Result<T> {
    let found = timeout(DEADLINE, async {
        loop {
            if let Some(found) = find().await {
                return found;
            }
            sleep(POLL).await;
        }
    });
    let limit = DEADLINE.as_secs();
    found
        .await
        .with_context(|| format!("not within {limit} s: {what}"))
}
