//! The credentials of requests, and the client that uses them. Nothing else reads credentials.
//!
//! kube would read a token, and a certificate authority, about once a minute: on the thread of the request, without a
//! limit, from any kind of file. Here, another thread reads all files, one reading at a time, and requests use what it
//! read last. Without requests, nothing is read.

mod claims;
mod source;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use http::{HeaderValue, Uri};
use kube::Client;
use tokio::sync::watch;
use tokio::task::spawn_blocking;
use tokio::time::{Instant, sleep_until, timeout, timeout_at};
use tracing::{debug, info, warn};

use super::ApiError;
use crate::blocking::joined;
use crate::incident::Incident;
use crate::rate_limit::RepeatFilter;
use source::Content;
pub use source::Source;

/// A request that finds older credentials starts another reading. The kubelet renews a token when a fifth of its life
/// is left, which is some minutes.
const MAX_AGE: Duration = Duration::from_mins(1);
/// The interval between readings while the files cannot be read or the server refuses what is in them.
const RETRY_INTERVAL: Duration = Duration::from_secs(1);
/// How long a request waits for a reading while the credentials in use may still be good.
const PATIENCE: Duration = Duration::from_millis(100);
/// The same for the first reading and after a refusal.
const LONG_PATIENCE: Duration = Duration::from_secs(3);
const TOO_LONG: &str = "the file system does not answer";

pub(super) struct Credentials {
    source: Source,
    state: Mutex<State>,
    /// Notified at the end of each reading.
    readings: watch::Sender<()>,
    last_failure: watch::Sender<Option<Incident>>,
}

/// The client and the header for one request.
pub(super) struct InUse {
    pub(super) client: Client,
    pub(super) authorization: Option<HeaderValue>,
    version: u64,
}

struct State {
    content: Content,
    /// Counts the changes of the content.
    version: u64,
    /// The version of the last change of the connection settings. A new token alone does not change them.
    settings_since: u64,
    /// With the version of its settings. An old client is used as long as it works: the watches are on its
    /// connection, and a certificate authority may be replaced before the server's certificate is.
    client: Option<(Client, u64)>,
    /// Whether the server has refused this version.
    refused: bool,
    is_reading: bool,
    /// When the last reading began.
    read_at: Instant,
    /// From then on, a request starts another reading.
    stale_at: Instant,
    failure: RepeatFilter,
}

impl Credentials {
    /// Fails if the files cannot be read. Does not connect.
    pub(super) async fn new(
        source: Source,
        last_failure: watch::Sender<Option<Incident>>,
    ) -> Result<Self, ApiError> {
        let read_at = Instant::now();
        let mut reading = spawn_blocking({
            let source = source.clone();
            move || source::read(&source)
        });
        let content = timeout(LONG_PATIENCE, joined(&mut reading)).await;
        let content = content.unwrap_or_else(|_| Err(TOO_LONG.into()));
        let state = State {
            content: content.map_err(ApiError::Credentials)?,
            version: 0,
            settings_since: 0,
            client: None,
            refused: false,
            is_reading: false,
            read_at,
            stale_at: read_at + MAX_AGE,
            failure: RepeatFilter::default(),
        };
        Ok(Self {
            source,
            state: Mutex::new(state),
            readings: watch::Sender::default(),
            last_failure,
        })
    }

    /// The URL of the API server.
    pub(super) fn url(&self) -> Uri {
        self.state().content.settings.url.clone()
    }

    /// See [`claims::pod`].
    pub(super) fn own_pod(&self) -> Option<String> {
        claims::pod(self.state().content.authorization.as_ref()?)
    }

    /// The client and the header for the next request.
    pub(super) async fn for_request(self: &Arc<Self>) -> InUse {
        let stale_at = self.state().stale_at;
        if stale_at <= Instant::now() {
            self.read_again(PATIENCE).await;
        }
        self.state().in_use()
    }

    /// The server refused `refused`, or its certificate was not accepted with them. Returns other credentials to send the
    /// request again, if there are any.
    pub(super) async fn replace(self: &Arc<Self>, refused: &InUse) -> Option<InUse> {
        {
            let mut state = self.state();
            state.refused = true;
            let settings_since = state.settings_since;
            state
                .client
                .take_if(|(_, version)| *version < settings_since);
        }
        let is_same = || self.state().version == refused.version;
        if is_same() {
            self.read_again(LONG_PATIENCE).await;
        }
        (!is_same()).then(|| self.state().in_use())
    }

    /// The next request reads the credentials and opens a connection.
    pub(super) fn reconnect(&self) {
        let mut state = self.state();
        state.client = None;
        state.stale_at = Instant::now();
    }

    /// Completes as soon as the credentials differ from those at the time of this call. Reads them once a second.
    pub(super) fn renewed(self: &Arc<Self>) -> impl Future<Output = ()> + use<> {
        let credentials = Arc::clone(self);
        let mut readings = self.readings.subscribe();
        let version = self.state().version;
        async move {
            loop {
                let read_at = {
                    let state = credentials.state();
                    if state.version != version {
                        return;
                    }
                    state.read_at
                };
                tokio::select! {
                    _ = readings.changed() => {}
                    () = sleep_until(read_at + RETRY_INTERVAL) => {
                        credentials.begin_reading();
                        let _ = readings.changed().await;
                    }
                }
            }
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads everything again. Waits for that until `patience` after the reading began.
    async fn read_again(self: &Arc<Self>, patience: Duration) {
        let (read_at, mut readings) = self.begin_reading();
        let end = timeout_at(read_at + patience, readings.changed()).await;
        if end.is_err() {
            self.failed(TOO_LONG.into());
        }
    }

    /// Starts a reading unless one is under way: one that hangs keeps its thread. Returns when the reading began, and what
    /// notifies of its end.
    fn begin_reading(self: &Arc<Self>) -> (Instant, watch::Receiver<()>) {
        let mut state = self.state();
        if !state.is_reading {
            state.is_reading = true;
            state.read_at = Instant::now();
            let credentials = Arc::clone(self);
            spawn_blocking(move || credentials.end_reading(source::read(&credentials.source)));
        }
        // The state is still locked: the reading cannot end unnoticed.
        (state.read_at, self.readings.subscribe())
    }

    fn end_reading(&self, content: Result<Content, String>) {
        let content = content.map_err(|error| self.failed(error)).ok();
        let mut state = self.state();
        state.is_reading = false;
        state.stale_at = state.read_at + RETRY_INTERVAL;
        if let Some(content) = content {
            state.apply(content);
        }
        self.readings.send_replace(());
    }

    fn failed(&self, error: String) {
        let error = ApiError::Credentials(error).to_string();
        let now = Instant::now().into_std();
        if self.state().failure.should_log(now, &error) {
            warn!(
                error,
                "failed to read the credentials; continuing with the earlier ones"
            );
        }
        self.last_failure.send_replace(Some(Incident::now(error)));
    }
}

impl State {
    fn in_use(&mut self) -> InUse {
        let fresh = || (self.content.settings.client(), self.version);
        let (client, client_version) = self.client.get_or_insert_with(fresh);
        let is_old = *client_version < self.settings_since;
        InUse {
            client: client.clone(),
            authorization: self.content.authorization.clone(),
            version: if is_old {
                *client_version
            } else {
                self.version
            },
        }
    }

    fn apply(&mut self, content: Content) {
        self.stale_at = self.read_at + MAX_AGE;
        if self.failure.end() {
            info!("the credentials can be read again");
        }
        let is_new_token = content.authorization != self.content.authorization;
        let are_new_settings = content.settings.sha256 != self.content.settings.sha256;
        // Even if all files are the same, the machine's certificate authorities may differ.
        self.content = content;
        if !is_new_token && !are_new_settings {
            debug!("read the credentials; they are the same");
            return;
        }
        debug!("the credentials have changed");
        self.version += 1;
        if are_new_settings {
            self.settings_since = self.version;
            if self.refused {
                self.client = None;
            }
        }
        self.refused = false;
    }
}

#[cfg(test)]
mod tests;
