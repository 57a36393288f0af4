//! Sends Events, in its own time: so many and no more, and for so long and no longer.

use std::collections::HashMap;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use k8s_openapi::api::core::v1::ObjectReference;
use kube::Client;
use kube::runtime::events::{Event, Recorder, Reporter};
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until};
use tracing::{debug, info, warn};

use super::{CONTROLLER, bad_file, event};
use crate::api::{ApiError, ApiServer};
use crate::backoff::{Backoff, jittered};
use crate::notification::Notification;
use crate::rate_limit::RepeatFilter;
use crate::rate_limit::TokenBucket;

/// The API server takes no longer `reportingInstance`.
const MAX_INSTANCE: usize = 128;
/// Events that wait to be sent; those that find no room are given up. It fills only while the API server is away.
const QUEUE: usize = 64;
/// An Event that could not be sent for so long is given up: it would bear the time of its sending.
const PATIENCE: Duration = Duration::from_mins(1);
const RETRY_BASE: Duration = Duration::from_secs(1);
/// Short enough for an Event to be tried more than once within its [`PATIENCE`], unless the server asks for a longer wait.
/// Those that wait behind one that fails may be too old by its end, and are never tried.
const RETRY_CAP: Duration = Duration::from_secs(30);
/// Those of one rule and reason. Less than what is logged: each is a write to the store of the whole cluster, and may
/// come from every node at once.
const OF_A_KIND: TokenBucket = TokenBucket::new(5, Duration::from_mins(1));
/// For how long kube's recorder takes an Event for a repetition of the one before.
const REPETITION: Duration = Duration::from_mins(6);

/// The two ends of a queue of Events on this Node.
pub fn channel(api: Arc<ApiServer>, node_name: String) -> (Sender, Publisher) {
    let (queue, waiting) = mpsc::channel(QUEUE);
    let given_up = Arc::default();
    let sender = Sender {
        queue,
        on: Arc::default(),
        given_up: Arc::clone(&given_up),
    };
    let publisher = Publisher {
        waiting,
        api,
        node_name,
        client: None,
        recorders: HashMap::new(),
        tokens: HashMap::new(),
        backoff: Backoff::new(RETRY_BASE),
        next_at: Instant::now(),
        failure: RepeatFilter::default(),
        given_up,
    };
    (sender, publisher)
}

/// An Event that waits to be sent.
struct Waiting {
    since: Instant,
    /// Empty for what is of no rule.
    rule: String,
    node_uid: String,
    event: Event,
}

/// Where notices go in. Never waits. Clones are switched on and off together.
#[derive(Debug, Clone)]
pub struct Sender {
    queue: mpsc::Sender<Waiting>,
    on: Arc<AtomicBool>,
    given_up: Arc<AtomicU32>,
}

impl Sender {
    /// Off at first.
    pub fn switch(&self, on: bool) {
        self.on.store(on, Ordering::Relaxed);
    }

    /// Has an Event made of `notice`, if it is worth one and Events are on.
    pub fn send(&self, notice: &Notification) {
        if let (Some(event), Some(node_uid)) = (event(notice), &notice.node_uid) {
            self.enqueue(&notice.rule, node_uid, event);
        }
    }

    /// The same of a configuration file that is bad, with these problems, one a line.
    pub fn send_of_bad_file(&self, node_uid: &str, problems: &str) {
        // No rule's name is empty.
        self.enqueue("", node_uid, bad_file(problems));
    }

    fn enqueue(&self, rule: &str, node_uid: &str, event: Event) {
        if !self.on.load(Ordering::Relaxed) {
            return;
        }
        let waiting = Waiting {
            since: Instant::now(),
            rule: rule.to_owned(),
            node_uid: node_uid.to_owned(),
            event,
        };
        if self.queue.try_send(waiting).is_err() {
            self.given_up.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// Sends what comes out, one request at a time.
pub struct Publisher {
    waiting: mpsc::Receiver<Waiting>,
    api: Arc<ApiServer>,
    node_name: String,
    /// From the first Event on.
    client: Option<Client>,
    /// By the note, with the time of the last use. A recorder takes an Event that differs only in its note for a
    /// repetition, and keeps the first note: the next rule's removal would be a second one of the rule before.
    recorders: HashMap<String, (Instant, Recorder)>,
    /// By rule and reason.
    tokens: HashMap<(String, String), TokenBucket>,
    backoff: Backoff,
    /// Not before.
    next_at: Instant,
    failure: RepeatFilter,
    /// Events, since they were last told of.
    given_up: Arc<AtomicU32>,
}

impl Publisher {
    /// Runs until every [`Sender`] is gone and the queue is empty.
    pub async fn run(mut self) {
        while let Some(waiting) = self.waiting.recv().await {
            if self.takes(&waiting) {
                self.publish(&waiting).await;
            } else {
                let (rule, reason) = (waiting.rule, waiting.event.reason);
                debug!(rule, reason, "no Event: there are too many of the kind");
            }
        }
    }

    /// Whether there are not too many of the kind.
    fn takes(&mut self, waiting: &Waiting) -> bool {
        let now = Instant::now().into_std();
        self.tokens.retain(|_, tokens| !tokens.is_full(now));
        let kind = (waiting.rule.clone(), waiting.event.reason.clone());
        let tokens = self.tokens.entry(kind).or_insert(OF_A_KIND);
        let takes = tokens.next_at(now).is_none();
        if takes {
            tokens.take(now);
        }
        takes
    }

    /// Tries until it is there, or is no longer worth it.
    async fn publish(&mut self, waiting: &Waiting) {
        let mut renewed = pin!(self.api.renewed());
        let mut is_refused = false;
        loop {
            tokio::select! {
                () = sleep_until(self.next_at) => {}
                () = &mut renewed, if is_refused => {}
            }
            if waiting.since.elapsed() > PATIENCE {
                break;
            }
            match self.try_once(waiting).await {
                Ok(()) => return self.succeeded(),
                Err(error) => {
                    self.failed(&error);
                    is_refused = error.refuses_credentials();
                    renewed.set(self.api.renewed());
                    if !may_pass(&error) {
                        break;
                    }
                }
            }
        }
        self.given_up.fetch_add(1, Ordering::Relaxed);
    }

    async fn try_once(&mut self, waiting: &Waiting) -> Result<(), ApiError> {
        let regarding = ObjectReference {
            api_version: Some("v1".into()),
            kind: Some("Node".into()),
            name: Some(self.node_name.clone()),
            uid: Some(waiting.node_uid.clone()),
            // No namespace: the Event itself is in `default` then.
            ..ObjectReference::default()
        };
        let event = &waiting.event;
        let note = event.note.clone().unwrap_or_default();
        let result = self.recorder(&note).publish(event, &regarding).await;
        let result = result.map_err(ApiError::from);
        if result.as_ref().is_err_and(ApiError::is_not_found) {
            // It was to be a repetition of one that has expired, or that somebody has deleted.
            self.recorders.remove(&note);
            return Ok(self.recorder(&note).publish(event, &regarding).await?);
        }
        result
    }

    /// The one for this note.
    fn recorder(&mut self, note: &str) -> &Recorder {
        let now = Instant::now();
        self.recorders
            .retain(|_, (used, _)| now - *used < REPETITION);
        let client = self
            .client
            .get_or_insert_with(|| Arc::clone(&self.api).kube_client());
        let fresh = || {
            let reporter = Reporter {
                controller: CONTROLLER.into(),
                instance: Some(self.node_name.chars().take(MAX_INSTANCE).collect()),
            };
            (now, Recorder::new(client.clone(), reporter))
        };
        let (used, recorder) = self.recorders.entry(note.to_owned()).or_insert_with(fresh);
        *used = now;
        recorder
    }

    fn succeeded(&mut self) {
        self.backoff.reset();
        let had_failed = self.failure.end();
        let given_up = self.given_up.swap(0, Ordering::Relaxed);
        if had_failed || given_up > 0 {
            info!(given_up, "publishing Events again");
        }
    }

    fn failed(&mut self, error: &ApiError) {
        let now = Instant::now();
        let asked = jittered(error.retry_after().unwrap_or_default());
        self.next_at = now + self.backoff.next(RETRY_CAP).max(asked);
        let message = error.to_string();
        if !self.failure.is_news(now.into_std(), &message) {
            debug!(error = message, "failed to publish an Event");
            return;
        }
        let given_up = self.given_up.swap(0, Ordering::Relaxed);
        warn!(error = message, given_up, "failed to publish an Event");
    }
}

/// Whether the same request may succeed later.
fn may_pass(error: &ApiError) -> bool {
    let may_pass = |code| matches!(code, 401 | 403 | 408 | 409 | 429) || code >= 500;
    error.code().is_none_or(may_pass)
}

#[cfg(test)]
mod tests;
