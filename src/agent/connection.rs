//! The log lines about the connection to the API server.

use std::time::Instant;

use tracing::{debug, info, warn};

use crate::api::ApiError;
use crate::rate_limit::RepeatFilter;

#[derive(Default)]
pub(super) struct Connection {
    watching: bool,
    watch_failure: RepeatFilter,
    request_failure: RepeatFilter,
}

impl Connection {
    pub(super) fn is_watching(&self) -> bool {
        self.watching
    }

    pub(super) fn watching(&mut self) {
        self.watching = true;
        if self.watch_failure.end() {
            info!("the watch of the Node works again");
        } else {
            debug!("watching the Node");
        }
    }

    /// The watch has ended, and the next one has not synced yet: what is known may be out of date.
    pub(super) fn outdated(&mut self) {
        self.watching = false;
        debug!("the next watch takes long to begin");
    }

    /// Without an error, the server ended the watch cleanly: the known Node still counts as up to date.
    pub(super) fn watch_ended(&mut self, error: Option<&ApiError>) {
        let Some(error) = error else {
            debug!("the watch ended; watching again");
            return;
        };
        self.watching = false;
        let message = error.to_string();
        if self.watch_failure.should_log(Instant::now(), &message) {
            warn!(error = message, "failed to watch the Node; trying again");
        }
    }

    /// A write succeeded.
    pub(super) fn request_succeeded(&mut self) {
        self.request_failure.end();
    }

    /// Logs trouble at `info`. For a conflict or a denial, the code that acts on it logs what follows.
    pub(super) fn request_failed(&mut self, error: &ApiError) {
        let message = error.to_string();
        let is_trouble = error
            .code()
            .is_none_or(|code| code == 401 || code == 429 || code >= 500);
        if is_trouble && self.request_failure.should_log(Instant::now(), &message) {
            info!(error = message, "a request failed; trying again");
        } else {
            debug!(error = message, "a request failed; trying again");
        }
    }
}
