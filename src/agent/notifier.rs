//! Where notifications go: to the counters, the log and the Events.

mod log;

use tracing::debug;

use crate::events;
use crate::metrics::Counters;
use crate::rule::Notification;

#[derive(Debug, Clone, Default)]
pub(super) struct Notifier {
    counters: Counters,
    events: Option<events::Sender>,
}

impl Notifier {
    pub(super) fn new(counters: Counters, events: Option<events::Sender>) -> Self {
        Self { counters, events }
    }

    /// At first there are no Events.
    pub(super) fn switch_events(&self, on: bool) {
        if let Some(events) = &self.events {
            events.switch(on);
        }
    }

    /// Counts from 0 what happens to a rule of this name.
    pub(super) fn begin(&self, rule: &str) {
        self.counters.begin(rule);
    }

    pub(super) fn forget(&self, rule: &str) {
        self.counters.forget(rule);
    }

    /// Counts, logs, and sends an Event.
    pub(super) fn notify(&self, notice: &Notification) {
        self.counters.count(notice);
        log::write(notice);
        if let Some(events) = &self.events {
            events.send(notice);
        }
    }

    /// For what happens too often for the log and for Events.
    pub(super) fn count(&self, notice: &Notification) {
        self.counters.count(notice);
        debug!(?notice, "counted only: it happens too often");
    }

    /// Sends an Event about an invalid configuration file. Whoever reads the file logs that.
    pub(super) fn bad_file(&self, node_uid: &str, problems: &str) {
        if let Some(events) = &self.events {
            events.send_of_bad_file(node_uid, problems);
        }
    }
}
