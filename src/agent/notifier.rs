//! The ways in which people are told of what happens.

use tracing::debug;

use crate::events;
use crate::metrics::Counters;
use crate::notification::Notification;

/// Tells of what happens to rules.
#[derive(Debug, Clone, Default)]
pub(super) struct Notifier {
    counters: Counters,
    events: Option<events::Sender>,
}

impl Notifier {
    pub(super) fn new(counters: Counters, events: Option<events::Sender>) -> Self {
        Self { counters, events }
    }

    /// At first there are none.
    pub(super) fn switch_events(&self, on: bool) {
        if let Some(events) = &self.events {
            events.switch(on);
        }
    }

    /// Counts from 0 what happens to a rule of this name.
    pub(super) fn begin(&self, rule: &str) {
        self.counters.begin(rule);
    }

    /// Forgets what was counted of it.
    pub(super) fn forget(&self, rule: &str) {
        self.counters.forget(rule);
    }

    /// `aloud`: where each telling costs a reader something, and not merely counted.
    pub(super) fn tell(&self, notice: &Notification, aloud: bool) {
        self.counters.count(notice);
        if !aloud {
            debug!(?notice, "not told: it happens too often");
            return;
        }
        notice.log();
        if let Some(events) = &self.events {
            events.send(notice);
        }
    }

    /// The configuration file is bad. The log has it from where that was found.
    pub(super) fn tell_of_bad_file(&self, node_uid: &str, problems: &str) {
        if let Some(events) = &self.events {
            events.send_of_bad_file(node_uid, problems);
        }
    }
}
