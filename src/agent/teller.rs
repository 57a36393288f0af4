//! The ways in which people are told of what happens.

use tracing::debug;

use crate::config::Rule;
use crate::events;
use crate::notice::Notice;

/// Tells of what happens to rules.
#[derive(Debug, Clone, Default)]
pub(super) struct Teller {
    /// `None`: nothing is to be written.
    events: Option<events::Sender>,
}

impl Teller {
    pub(super) fn new(events: events::Sender) -> Self {
        let events = Some(events);
        Self { events }
    }

    /// The one for `rule`: an Event is a write, too.
    pub(super) fn of(mut self, rule: &Rule) -> Self {
        self.events = self.events.filter(|_| !rule.dry_run);
        self
    }

    /// `aloud`: where each telling costs a reader something, and not merely counted.
    pub(super) fn tell(&self, notice: &Notice, aloud: bool) {
        if !aloud {
            debug!(?notice, "not told: it happens too often");
            return;
        }
        notice.log();
        if let Some(events) = &self.events {
            events.send(notice);
        }
    }
}
