//! What a condition reports to the agent's loop.

use std::sync::atomic::{AtomicU64, Ordering};

use tokio::sync::mpsc;

use super::Outcome;

/// One evaluation of a gate, from its start until the gate rests or starts afresh. No two in a process are the same,
/// so that what still arrives of one that is over, or of a gate that is no longer configured, is about nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Evaluation(u64);

impl Evaluation {
    /// Another one than all before.
    pub(super) fn begin() -> Self {
        static BEGUN: AtomicU64 = AtomicU64::new(0);
        Self(BEGUN.fetch_add(1, Ordering::Relaxed))
    }
}

/// Which condition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    /// The gate's evaluation.
    pub evaluation: Evaluation,
    /// Index of the condition in the gate; 0 unless the gate is a group.
    pub condition: usize,
}

/// A condition's state after a change of it or of its message.
#[derive(Debug)]
pub struct Update {
    /// Whose.
    pub place: Place,
    /// The new state.
    pub outcome: Outcome,
}

/// Tells of one condition, when there is something new to tell.
pub(super) struct Reporter {
    place: Place,
    updates: mpsc::Sender<Update>,
    told: Option<Outcome>,
}

impl Reporter {
    pub(super) fn new(place: Place, updates: mpsc::Sender<Update>) -> Self {
        Self {
            place,
            updates,
            told: None,
        }
    }

    /// The channel is bounded: a busy agent slows its gates down rather than missing a change. When nobody listens any
    /// more, the task is about to be ended.
    pub(super) async fn report(&mut self, state: &Outcome) {
        if self.told.as_ref() != Some(state) {
            self.told = Some(state.clone());
            let _ = self
                .updates
                .send(Update {
                    place: self.place,
                    outcome: state.clone(),
                })
                .await;
        }
    }
}
