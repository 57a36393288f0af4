//! What the tasks of gates report to the agent's loop.

use std::sync::atomic::{AtomicU64, Ordering};

use tokio::sync::mpsc;

use super::Outcome;

/// Identifies a gate's run, from its start until the gate rests or starts again. Unique in the process, so that the agent
/// ignores a late update of a run that has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RunId(u64);

impl RunId {
    pub(super) fn next() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        Self(NEXT.fetch_add(1, Ordering::Relaxed))
    }
}

/// A new outcome of a check.
#[derive(Debug)]
pub struct Update {
    pub run: RunId,
    /// The index in the gate's `anyOf`; 0 for any other gate.
    pub index: usize,
    pub outcome: Outcome,
}

/// Sends the outcomes of one check, as far as they differ from the one before.
pub(super) struct Reporter {
    run: RunId,
    index: usize,
    updates: mpsc::Sender<Update>,
    last: Option<Outcome>,
}

impl Reporter {
    pub(super) fn new(run: RunId, index: usize, updates: mpsc::Sender<Update>) -> Self {
        Self {
            run,
            index,
            updates,
            last: None,
        }
    }

    /// Waits while the channel is full: a slow agent slows its gates down, and misses no change.
    pub(super) async fn report(&mut self, outcome: &Outcome) {
        if self.last.as_ref() == Some(outcome) {
            return;
        }
        self.last = Some(outcome.clone());
        let update = Update {
            run: self.run,
            index: self.index,
            outcome: outcome.clone(),
        };
        // Without a receiver, the task of this check is about to end.
        let _ = self.updates.send(update).await;
    }
}
