//! Where notifications go: to the counters, the log and the Events.

mod log;

use tracing::debug;

use crate::events;
use crate::metrics::Counters;
use crate::rule::Notification;

#[derive(Debug, Clone, Default)]
pub(super) struct Notifier {
    pub(super) counters: Counters,
    pub(super) events: Option<events::Sender>,
}

impl Notifier {
    /// At first, Events are off.
    pub(super) fn switch_events(&self, on: bool) {
        if let Some(events) = &self.events {
            events.switch(on);
        }
    }

    /// Counts and, if it is `reported`, logs and sends an Event.
    pub(super) fn notify(&self, notification: &Notification, reported: bool) {
        self.counters.count(notification);
        if !reported {
            debug!(?notification, "counted only: it happens too often");
            return;
        }
        log::write(notification);
        if let Some(events) = &self.events {
            events.send(notification);
        }
    }

    /// Sends an Event about an invalid configuration file. [`crate::reload`] logs the problems.
    pub(super) fn bad_file(&self, node_uid: &str, problems: &str) {
        if let Some(events) = &self.events {
            events.send_of_bad_file(node_uid, problems);
        }
    }
}
