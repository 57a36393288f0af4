//! What requests are sent with: the one place that reads the credentials, and reads them again.
//!
//! kube would read a token again about once a minute, and a certificate authority too: on the thread of the request,
//! without a limit, from whatever is in the file's place. Here, all files are read on another thread, one reading at a
//! time, and what was read last is used until something else has been read. Without requests, nothing is read.

mod source;

use std::sync::Arc;
use std::time::Duration;

use http::{HeaderValue, Uri};
use kube::Client;
use tokio::sync::watch::Sender;
use tokio::task::spawn_blocking;
use tokio::time::{Instant, sleep_until, timeout, timeout_at};
use tracing::{debug, info, warn};

use super::{ApiError, connect};
use crate::blocking::joined;
use crate::incident::Incident;
use crate::rate_limit::RepeatFilter;
use source::Content;
pub(super) use source::Settings;
pub use source::Source;

/// A request that finds older credentials starts another reading. The kubelet renews a token when a fifth of its life is
/// left, which is some minutes.
const MAX_AGE: Duration = Duration::from_mins(1);
/// From one look to the next, while the files cannot be read or the server refuses what is in them.
const LOOK: Duration = Duration::from_secs(1);
/// How long a request waits for a reading when what was read before may still be good.
const PATIENCE: Duration = Duration::from_millis(100);
/// The same when that has been refused, or when nothing has been read yet.
const LONG_PATIENCE: Duration = Duration::from_secs(3);
const TOO_LONG: &str = "the file system does not answer";

/// The credentials and the connection that is made with them.
pub(super) struct Credentials {
    source: Source,
    state: Sender<State>,
    last_failure: Sender<Option<Incident>>,
}

/// What a request is sent with.
pub(super) struct InUse {
    pub(super) client: Client,
    pub(super) authorization: Option<HeaderValue>,
    version: u64,
}

struct State {
    content: Content,
    /// Counts the changes of the content.
    version: u64,
    /// The version of the last change that was not of the token alone.
    settings_since: u64,
    /// With the version that it was made from. An old client is used as long as it works: its connection has the watches,
    /// and a certificate authority may be replaced before the server's certificate is.
    client: Option<(Client, u64)>,
    /// Whether the server has refused this version.
    refused: bool,
    is_reading: bool,
    /// When the last reading began.
    read_at: Instant,
    /// When a request is to have it read again.
    stale_at: Instant,
    failure: RepeatFilter,
}

impl Credentials {
    /// Fails if they cannot be read. Does not connect.
    pub(super) async fn new(
        source: Source,
        last_failure: Sender<Option<Incident>>,
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
            state: Sender::new(state),
            last_failure,
        })
    }

    /// Where the server is to be found.
    pub(super) fn url(&self) -> Uri {
        self.state.borrow().content.settings.url.clone()
    }

    /// What the next request is sent with.
    pub(super) async fn for_request(self: &Arc<Self>) -> InUse {
        let stale_at = self.state.borrow().stale_at;
        if stale_at <= Instant::now() {
            self.read_again(PATIENCE).await;
        }
        self.in_use()
    }

    /// A request failed because the server refused its credentials, or because these do not trust the server. Gives other
    /// credentials to send it with again, if there are any.
    pub(super) async fn instead_of(self: &Arc<Self>, refused: &InUse) -> Option<InUse> {
        self.state.send_if_modified(|state| {
            state.refused = true;
            state
                .client
                .take_if(|(_, made)| *made < state.settings_since);
            false
        });
        let is_same = || self.state.borrow().version == refused.version;
        if is_same() {
            self.read_again(LONG_PATIENCE).await;
        }
        (!is_same()).then(|| self.in_use())
    }

    /// The next request reads the credentials again and makes a new connection.
    pub(super) fn connect_anew(&self) {
        self.state.send_if_modified(|state| {
            state.client = None;
            state.stale_at = Instant::now();
            false
        });
    }

    /// Completes as soon as the credentials differ from those at the time of this call. Looks at them once a second.
    pub(super) fn renewed(self: &Arc<Self>) -> impl Future<Output = ()> + use<> {
        let credentials = Arc::clone(self);
        let mut state = self.state.subscribe();
        let version = state.borrow().version;
        async move {
            loop {
                let (is_same, is_reading, look_at) = {
                    let state = state.borrow_and_update();
                    let look_at = state.read_at + LOOK;
                    (state.version == version, state.is_reading, look_at)
                };
                if !is_same {
                    return;
                }
                tokio::select! {
                    _ = state.changed() => {}
                    () = sleep_until(look_at), if !is_reading => credentials.begin_reading(),
                }
            }
        }
    }

    fn in_use(&self) -> InUse {
        let state = self.state.borrow();
        let authorization = state.content.authorization.clone();
        if let Some((client, made)) = &state.client {
            let is_old = *made < state.settings_since;
            return InUse {
                client: client.clone(),
                authorization,
                version: if is_old { *made } else { state.version },
            };
        }
        let (client, version) = (connect::client(&state.content.settings), state.version);
        drop(state);
        self.state.send_if_modified(|state| {
            state.client = Some((client.clone(), version));
            false
        });
        InUse {
            client,
            authorization,
            version,
        }
    }

    /// Reads everything again, and waits for that until `patience` after its beginning.
    async fn read_again(self: &Arc<Self>, patience: Duration) {
        self.begin_reading();
        let mut state = self.state.subscribe();
        let until = state.borrow().read_at + patience;
        let done = timeout_at(until, state.wait_for(|state| !state.is_reading)).await;
        if done.is_err() {
            self.failed(TOO_LONG.into());
        }
    }

    /// Unless a reading is under way. One that hangs holds its thread.
    fn begin_reading(self: &Arc<Self>) {
        let begins = self.state.send_if_modified(|state| {
            let begins = !std::mem::replace(&mut state.is_reading, true);
            if begins {
                state.read_at = Instant::now();
            }
            begins
        });
        if begins {
            let credentials = Arc::clone(self);
            spawn_blocking(move || {
                let content = source::read(&credentials.source);
                credentials.take(content);
            });
        }
    }

    /// Takes in the result of a reading.
    fn take(&self, content: Result<Content, String>) {
        let (content, error) = match content {
            Ok(content) => (Some(content), None),
            Err(error) => (None, Some(error)),
        };
        if let Some(error) = error {
            self.failed(error);
        }
        self.state.send_modify(|state| {
            state.is_reading = false;
            state.stale_at = state.read_at + LOOK;
            if let Some(content) = content {
                state.take(content);
            }
        });
    }

    fn failed(&self, error: String) {
        let error = ApiError::Credentials(error).to_string();
        let mut is_news = false;
        self.state.send_if_modified(|state| {
            is_news = state.failure.is_news(Instant::now().into_std(), &error);
            false
        });
        if is_news {
            warn!(
                error,
                "failed to read the credentials; those read before stay in use"
            );
        }
        self.last_failure.send_replace(Some(Incident::now(error)));
    }
}

impl State {
    fn take(&mut self, content: Content) {
        self.stale_at = self.read_at + MAX_AGE;
        if self.failure.end() {
            info!("read the credentials again");
        }
        let is_new_token = content.authorization != self.content.authorization;
        let are_new_settings = content.settings.sha256 != self.content.settings.sha256;
        // Also where all is the same: the machine's certificate authorities may be others.
        self.content = content;
        if !is_new_token && !are_new_settings {
            debug!("looked at the credentials; they are the same");
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
