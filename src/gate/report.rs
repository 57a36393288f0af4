//! What a condition reports to the agent's loop.

use tokio::sync::mpsc;

use super::Outcome;

/// Which condition of which rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    /// Index of the rule.
    pub rule: usize,
    /// The round it belongs to; reports of earlier rounds may still arrive.
    pub round: u64,
    /// Index of the gate in the rule.
    pub gate: usize,
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
