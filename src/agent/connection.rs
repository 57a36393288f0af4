//! What people are told of the connection to the API server.

use std::time::Instant;

use tracing::{debug, info, warn};

use crate::api::ApiError;
use crate::logging::Repetition;
use crate::status::{ApiStatus, Incident};

/// Successes and failures of the watch and of other requests.
#[derive(Default)]
pub(super) struct Connection {
    status: ApiStatus,
    watch_failure: Repetition,
    request_failure: Repetition,
}

impl Connection {
    pub(super) fn status(&self) -> ApiStatus {
        self.status.clone()
    }

    pub(super) fn watching(&mut self) {
        self.status.watching = true;
        if self.watch_failure.end() {
            info!("watching the node again");
        } else {
            debug!("watching the node");
        }
    }

    /// Without an error, the server ended the watch in good order.
    pub(super) fn watch_ended(&mut self, error: Option<&ApiError>) {
        self.status.watching = false;
        let Some(error) = error else {
            debug!("the watch ended; watching again");
            return;
        };
        let message = error.to_string();
        if self.watch_failure.is_news(Instant::now(), &message) {
            warn!(error = message, "failed to watch the node; trying again");
        }
        self.status.last_error = Some(Incident::now(message));
    }

    pub(super) fn request_succeeded(&mut self) {
        self.request_failure.end();
    }

    pub(super) fn request_failed(&mut self, error: &ApiError) {
        let message = error.to_string();
        if self.request_failure.is_news(Instant::now(), &message) {
            info!(error = message, "a request did not succeed; trying again");
        }
        self.status.last_error = Some(Incident::now(message));
    }
}
