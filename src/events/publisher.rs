//! Sends Events in the background. Their number and the time for each of them are limited.

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

use super::{bad_file, event};
use crate::REPORTING_CONTROLLER;
use crate::api::{ApiError, ApiServer};
use crate::backoff::{Backoff, jittered};
use crate::rate_limit::{RepeatFilter, TokenBucket};
use crate::rule::Notification;

/// The API server's limit for `reportingInstance`, in bytes. The name of a Node is ASCII.
const MAX_INSTANCE: usize = 128;
/// The number of Events that can wait to be sent. More are dropped. The queue fills only while the API server is away.
const QUEUE: usize = 64;
/// An Event that could not be sent within this time is dropped, as its timestamp would be the time of sending.
const MAX_AGE: Duration = Duration::from_mins(1);
const RETRY_BASE: Duration = Duration::from_secs(1);
/// So short that an Event is tried more than once within [`MAX_AGE`], unless the server asks for a longer wait. Events that
/// wait behind a failing one may get too old without a try.
const RETRY_CAP: Duration = Duration::from_secs(30);
/// For each rule and reason. Fewer than log lines: each Event is a write to the cluster's etcd, and all nodes may send one
/// at once.
const LIMIT: TokenBucket = TokenBucket::new(5, Duration::from_mins(1));
/// Within this time, kube's recorder counts the same Event as a repetition.
const REPETITION: Duration = Duration::from_mins(6);

/// The two ends of a queue of Events for this Node. Call it on the runtime: the client starts a task.
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
        client: Arc::clone(&api).kube_client(),
        api,
        node_name,
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
    /// Empty for an Event that belongs to no rule.
    rule: String,
    node_uid: String,
    event: Event,
}

/// Queues Events and never waits. Clones are switched on and off together.
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

    /// Queues the Event of `notification`, if it has one and Events are on.
    pub fn send(&self, notification: &Notification) {
        if let (Some(event), Some(node_uid)) = (event(notification), &notification.node_uid) {
            self.enqueue(&notification.rule, node_uid, event);
        }
    }

    /// Queues the Event of an invalid configuration file. `problems`: one a line.
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

/// Sends the queued Events, one request at a time.
pub struct Publisher {
    waiting: mpsc::Receiver<Waiting>,
    api: Arc<ApiServer>,
    node_name: String,
    client: Client,
    /// By note, with the time of the last use. A recorder ignores the note when it looks for repetitions: with only one, a
    /// removal for the next rule would count as a second one for the rule before.
    recorders: HashMap<String, (Instant, Recorder)>,
    /// By rule and reason.
    tokens: HashMap<(String, String), TokenBucket>,
    backoff: Backoff,
    /// The next request is not sent before this.
    next_at: Instant,
    failure: RepeatFilter,
    /// Events since the last log line about them.
    given_up: Arc<AtomicU32>,
}

impl Publisher {
    /// Runs until every [`Sender`] is dropped and the queue is empty.
    pub async fn run(mut self) {
        while let Some(waiting) = self.waiting.recv().await {
            if self.is_allowed(&waiting) {
                self.publish(&waiting).await;
            } else {
                let (rule, reason) = (waiting.rule, waiting.event.reason);
                debug!(rule, reason, "dropped an Event: too many of its kind");
            }
        }
    }

    /// Takes a token, if there is one for the rule and reason.
    fn is_allowed(&mut self, waiting: &Waiting) -> bool {
        let now = Instant::now().into_std();
        self.tokens.retain(|_, tokens| !tokens.is_full(now));
        let kind = (waiting.rule.clone(), waiting.event.reason.clone());
        self.tokens.entry(kind).or_insert(LIMIT).try_take(now)
    }

    /// Tries until it succeeds, cannot succeed, or the Event is too old.
    async fn publish(&mut self, waiting: &Waiting) {
        let mut renewed = pin!(self.api.renewed());
        let mut is_refused = false;
        loop {
            tokio::select! {
                () = sleep_until(self.next_at) => {}
                () = &mut renewed, if is_refused => {}
            }
            if waiting.since.elapsed() > MAX_AGE {
                break;
            }
            match self.try_once(waiting).await {
                Ok(()) => return self.succeeded(),
                Err(error) => {
                    self.failed(&error);
                    is_refused = error.refuses_credentials();
                    renewed.set(self.api.renewed());
                    if !is_temporary(&error) {
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
            // Without a namespace, the Event itself is in `default`.
            ..ObjectReference::default()
        };
        let event = &waiting.event;
        let note = event.note.clone().unwrap_or_default();
        let result = self.recorder(&note).publish(event, &regarding).await;
        let result = result.map_err(ApiError::from);
        if result.as_ref().is_err_and(ApiError::is_not_found) {
            // The recorder meant to count a repetition, but the first Event has expired or was deleted.
            self.recorders.remove(&note);
            return Ok(self.recorder(&note).publish(event, &regarding).await?);
        }
        result
    }

    fn recorder(&mut self, note: &str) -> &Recorder {
        let now = Instant::now();
        self.recorders
            .retain(|_, (used, _)| now - *used < REPETITION);
        let fresh = || {
            let reporter = Reporter {
                controller: REPORTING_CONTROLLER.into(),
                instance: Some(self.node_name.chars().take(MAX_INSTANCE).collect()),
            };
            (now, Recorder::new(self.client.clone(), reporter))
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
            info!(given_up, "Events can be published again");
        }
    }

    fn failed(&mut self, error: &ApiError) {
        let now = Instant::now();
        let asked = jittered(error.retry_after().unwrap_or_default());
        self.next_at = now + self.backoff.next(RETRY_CAP).max(asked);
        let message = error.to_string();
        if !self.failure.should_log(now.into_std(), &message) {
            debug!(error = message, "failed to publish an Event");
            return;
        }
        let given_up = self.given_up.swap(0, Ordering::Relaxed);
        warn!(error = message, given_up, "failed to publish an Event");
    }
}

/// Whether the same request may succeed later.
fn is_temporary(error: &ApiError) -> bool {
    let is_temporary = |code| matches!(code, 401 | 403 | 408 | 409 | 429) || code >= 500;
    error.code().is_none_or(is_temporary)
}

#[cfg(test)]
mod tests;
