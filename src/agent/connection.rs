//! The log lines about the connection to the API server.

use std::time::Instant;

use tracing::{debug, info, warn};

use crate::api::ApiError;
use crate::rate_limit::RepeatFilter;

const GRANT_GET: &str =
    "grant the verb `get` for nodes; `untaint manifests --only rbac` writes the role";

/// Whether the server answered that it does not do what it was asked for, and is not in trouble itself.
fn is_refusal(error: &ApiError) -> bool {
    let is_refusal = |code| (400..500).contains(&code) && code != 429;
    error.code().is_some_and(is_refusal)
}

#[derive(Default)]
pub(super) struct Connection {
    watching: bool,
    watch_failure: RepeatFilter,
    missing_node: RepeatFilter,
    read_failure: RepeatFilter,
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

    /// The next watch takes long to begin, or the process was paused: what is known may be out of date.
    pub(super) fn outdated(&mut self) {
        self.watching = false;
        debug!("what is known of the Node may be out of date");
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
        } else {
            debug!(error = message, "failed to watch the Node; trying again");
        }
    }

    /// The watch shows no Node with this name.
    pub(super) fn node_missing(&mut self, node: &str) {
        if self.missing_node.should_log(Instant::now(), "") {
            warn!(node, "there is no Node with this name; waiting for it");
        } else {
            debug!(node, "there is no Node with this name; waiting for it");
        }
    }

    /// A write succeeded.
    pub(super) fn request_succeeded(&mut self) {
        self.request_failure.end();
    }

    /// Logs why a change of taints failed. The code that acts on a denial logs that, and also a conflict that lasts.
    pub(super) fn change_failed(&mut self, error: &ApiError) {
        let is_expected = error.is_denial() || matches!(error.code(), Some(409 | 422));
        if is_expected {
            debug!(%error, "a request failed; trying again");
        } else {
            self.request_failed(error);
        }
    }

    /// Logs why the Node could not be read.
    pub(super) fn read_failed(&mut self, error: &ApiError) {
        let message = error.to_string();
        if !is_refusal(error) {
            self.request_failed(error);
        } else if self.read_failure.should_log(Instant::now(), &message) {
            // Who watches the Node may lack this permission alone.
            let remedy = (error.code() == Some(403)).then_some(GRANT_GET);
            warn!(
                error = message,
                remedy, "failed to read the Node; trying again"
            );
        } else {
            debug!(error = message, "failed to read the Node; trying again");
        }
    }

    /// Warns of a refusal, because it may last until somebody acts. Logs other trouble at `info`.
    fn request_failed(&mut self, error: &ApiError) {
        let message = error.to_string();
        if !self.request_failure.should_log(Instant::now(), &message) {
            debug!(error = message, "a request failed; trying again");
        } else if is_refusal(error) {
            warn!(error = message, "a request failed; trying again");
        } else {
            info!(error = message, "a request failed; trying again");
        }
    }
}
