//! What evaluations report to the agent's loop.

use std::sync::atomic::{AtomicU64, Ordering};

use tokio::sync::mpsc;

use super::Outcome;

/// One evaluation of a gate, from its start until the gate stops or starts again. Unique in the process, so that a late
/// update of an evaluation that has ended is ignored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Evaluation(u64);

impl Evaluation {
    pub(super) fn begin() -> Self {
        static BEGUN: AtomicU64 = AtomicU64::new(0);
        Self(BEGUN.fetch_add(1, Ordering::Relaxed))
    }
}

/// Where an update comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Source {
    pub evaluation: Evaluation,
    /// The index in the gate's `anyOf`; 0 for any other gate.
    pub index: usize,
}

/// A new state, or a new message.
#[derive(Debug)]
pub struct Update {
    pub source: Source,
    pub outcome: Outcome,
}

/// Sends the outcomes of one source, as far as they differ from the one before.
pub(super) struct Reporter {
    source: Source,
    updates: mpsc::Sender<Update>,
    last: Option<Outcome>,
}

impl Reporter {
    pub(super) fn new(source: Source, updates: mpsc::Sender<Update>) -> Self {
        Self {
            source,
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
            source: self.source,
            outcome: outcome.clone(),
        };
        // Without a receiver, the task of this evaluation is about to be ended.
        let _ = self.updates.send(update).await;
    }
}
