//! The only composer: brings the watch, the gates, the decisions and the writes together in one loop.

pub(crate) mod gates;
mod once;
mod rule;

use std::pin::Pin;
use std::time::{Duration, Instant};

use k8s_openapi::api::core::v1::Taint;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::sleep_until;
use tracing::{debug, info, warn};

use crate::api::{ApiError, ApiServer};
use crate::config::Configuration;
use crate::logging::Repetition;
use crate::node;
use crate::node::patch::Removal;
use crate::node::removal::{Next, Verdict, Writes};
use crate::node::view::{Latest, NodeView};
use crate::node::watch::WatchNews;
use crate::status::{ApiStatus, Incident, NodeStatus, Status};
use crate::taint::TaintMatcher;
use once::Once;
use rule::RuleAtWork;

/// Watch news and gate updates that wait for the loop. Senders wait when it is full: nothing is dropped.
const QUEUE: usize = 16;

/// What the agent is to do.
#[derive(Debug, Clone)]
pub struct Options {
    /// The own Node, by its `metadata.name`.
    pub node_name: String,
    /// Return once every configured taint has been gone for so long.
    pub once: Option<Duration>,
}

/// Answers that the loop is alive.
pub type Ping = oneshot::Sender<()>;

/// Runs for ever or, with [`Options::once`], until the Node is free of the configured taints.
pub async fn run(
    configuration: Configuration,
    api: &ApiServer,
    options: Options,
    status: watch::Sender<Option<Status>>,
    pings: mpsc::Receiver<Ping>,
) {
    let (news, heard) = mpsc::channel(QUEUE);
    let (urgent, is_urgent) = watch::channel(false);
    let name = options.node_name.clone();
    let watching = node::watch::run(api, &name, news, is_urgent);
    let agent = Agent::new(configuration, api, options, status, urgent);
    tokio::select! {
        () = agent.work(heard, pings) => {}
        () = watching => {}
    }
}

/// A request under way. At most one at a time.
enum Call {
    /// A removal.
    Send(Removal),
    /// A read before the next removal, of the Node with this uid.
    Read(String),
    /// The last look of [`Options::once`], at the Node with this uid.
    Confirm(String),
}

impl Call {
    /// Of the Node it is about.
    fn uid(&self) -> &str {
        match self {
            Self::Send(removal) => &removal.uid,
            Self::Read(uid) | Self::Confirm(uid) => uid,
        }
    }
}

type Answer = Result<NodeView, ApiError>;
type Pending<'a> = (Call, Pin<Box<dyn Future<Output = Answer> + 'a>>);

struct Agent<'a> {
    api: &'a ApiServer,
    node_name: String,
    rules: Vec<RuleAtWork>,
    latest: Latest,
    seen: bool,
    writes: Writes,
    /// When the writes have something to do by time alone.
    write_at: Option<Instant>,
    once: Option<Once>,
    urgent: watch::Sender<bool>,
    watch_failure: Repetition,
    request_failure: Repetition,
    api_status: ApiStatus,
    status: watch::Sender<Option<Status>>,
    updates: mpsc::Receiver<crate::gate::runner::Update>,
}

impl<'a> Agent<'a> {
    fn new(
        configuration: Configuration,
        api: &'a ApiServer,
        options: Options,
        status: watch::Sender<Option<Status>>,
        urgent: watch::Sender<bool>,
    ) -> Self {
        let (sender, updates) = mpsc::channel(QUEUE);
        let rules = configuration.rules.into_iter().enumerate();
        let rules = rules
            .map(|(index, rule)| RuleAtWork::new(index, rule, sender.clone()))
            .collect();
        Self {
            api,
            node_name: options.node_name,
            rules,
            latest: Latest::default(),
            seen: false,
            writes: Writes::default(),
            write_at: None,
            once: options.once.map(Once::new),
            urgent,
            watch_failure: Repetition::default(),
            request_failure: Repetition::default(),
            api_status: ApiStatus::default(),
            status,
            updates,
        }
    }

    async fn work(mut self, mut heard: mpsc::Receiver<WatchNews>, mut pings: mpsc::Receiver<Ping>) {
        let mut pending: Option<Pending<'a>> = None;
        loop {
            let now = Instant::now();
            // While a removal is under way, what happens to its taints may be its own doing: its answer decides.
            if !matches!(pending, Some((Call::Send(_), _))) {
                self.step(now);
            }
            if pending.is_none() {
                pending = self.next_call(now);
            }
            self.publish();
            let wake = self.wake_at();
            tokio::select! {
                Some(news) = heard.recv() => self.hear(news),
                Some(update) = self.updates.recv() => self.rules[update.rule].take(Instant::now(), update),
                (call, answer) = answered(&mut pending) => {
                    if self.take_answer(&call, answer) {
                        self.publish();
                        return;
                    }
                }
                () = sleep_until(wake.unwrap_or(now).into()), if wake.is_some() => {}
                Some(ping) = pings.recv() => { let _ = ping.send(()); }
            }
        }
    }

    fn step(&mut self, now: Instant) {
        for rule in &mut self.rules {
            rule.step(now, self.latest.get());
        }
        let waits_for_node = |rule: &RuleAtWork| self.latest.get().is_none() && rule.all_open();
        let urgent = self
            .rules
            .iter()
            .any(|rule| waits_for_node(rule) || rule.wants_removal());
        self.urgent
            .send_if_modified(|known| std::mem::replace(known, urgent) != urgent);
        let done = self
            .latest
            .get()
            .is_some_and(|node| !node.may_be_tainted_by_karpenter())
            && self.rules.iter().all(RuleAtWork::is_done);
        if let Some(once) = &mut self.once {
            once.step(now, done);
        }
    }

    fn next_call(&mut self, now: Instant) -> Option<Pending<'a>> {
        self.write_at = None;
        let node = self.latest.get()?;
        let call = match self.writes.next(now, node, &ready(&self.rules)) {
            Next::Send(removal) => Call::Send(removal),
            Next::Read => Call::Read(node.uid.clone()),
            Next::Wait(until) => {
                self.write_at = until;
                if !self.once.as_ref().is_some_and(|once| once.is_due(now)) {
                    return None;
                }
                Call::Confirm(node.uid.clone())
            }
        };
        let (api, name) = (self.api, self.node_name.clone());
        let answer: Pin<Box<dyn Future<Output = Answer> + 'a>> = match &call {
            Call::Send(removal) => {
                let removal = removal.clone();
                Box::pin(async move { node::patch(api, &name, &removal).await })
            }
            Call::Read(_) | Call::Confirm(_) => {
                Box::pin(async move { node::get(api, &name).await })
            }
        };
        Some((call, answer))
    }

    fn hear(&mut self, news: WatchNews) {
        match news {
            WatchNews::Node(node) => self.offer(node),
            WatchNews::Gone(uid) => self.gone(uid.as_deref()),
            WatchNews::Synced => {
                self.api_status.watching = true;
                if self.watch_failure.end() {
                    info!("watching the node again");
                } else {
                    debug!("watching the node");
                }
            }
            WatchNews::Ended(None) => {
                self.api_status.watching = false;
                debug!("the watch ended; watching again");
            }
            WatchNews::Ended(Some(error)) => {
                self.api_status.watching = false;
                let message = error.to_string();
                if self.watch_failure.is_news(Instant::now(), &message) {
                    warn!(error = message, "failed to watch the node; trying again");
                }
                self.api_status.last_error = Some(Incident::now(message));
            }
        }
    }

    fn offer(&mut self, node: NodeView) {
        self.seen = true;
        let resource_version = node.resource_version;
        if self.latest.offer(node) {
            debug!(resource_version, "saw the node");
        } else {
            debug!(resource_version, "dropped a node older than the one known");
        }
    }

    fn gone(&mut self, uid: Option<&str>) {
        if self.latest.gone(uid) || !self.seen {
            warn!(
                node = self.node_name,
                "there is no such node; waiting for it"
            );
        }
    }

    /// Gives whether all is done.
    fn take_answer(&mut self, call: &Call, answer: Answer) -> bool {
        let now = Instant::now();
        let verdict = match call {
            Call::Send(removal) => self.writes.sent(now, removal, &answer),
            Call::Read(_) => self.writes.read(now, &ready(&self.rules), &answer),
            Call::Confirm(_) => None,
        };
        let succeeded = answer.is_ok();
        match answer {
            Ok(node) => {
                self.request_failure.end();
                if let Some(Verdict::Removed(taints)) = &verdict {
                    self.removed(now, taints, &node);
                }
                self.offer(node);
            }
            Err(error) if error.code() == Some(404) => self.gone(Some(call.uid())),
            Err(error) => self.failed(now, &error),
        }
        if let Some(Verdict::Denied {
            taint,
            message,
            first,
        }) = verdict
        {
            self.denied(&taint, &message, first);
        }
        match (call, &mut self.once) {
            (Call::Confirm(_), Some(once)) if !succeeded => once.postpone(now),
            (Call::Confirm(_), Some(_)) => {
                self.step(now);
                return self.once.as_ref().is_some_and(|once| once.is_due(now));
            }
            _ => {}
        }
        false
    }

    fn failed(&mut self, now: Instant, error: &ApiError) {
        let message = error.to_string();
        if self.request_failure.is_news(now, &message) {
            info!(
                error = message,
                "a request to the API server did not succeed; trying again"
            );
        }
        self.api_status.last_error = Some(Incident::now(message));
    }

    fn removed(&mut self, now: Instant, taints: &[Taint], node: &NodeView) {
        for rule in &mut self.rules {
            let matcher = rule.rule().taint.clone();
            for taint in taints.iter().filter(|taint| matcher.matches(taint)) {
                rule.removed(now, taint, node.has(&matcher));
            }
        }
    }

    fn denied(&mut self, taint: &Taint, message: &str, first: bool) {
        let rule = self
            .rules
            .iter_mut()
            .find(|rule| rule.rule().taint.matches(taint));
        if let Some(rule) = rule {
            rule.denied(taint, message, first);
        }
    }

    fn wake_at(&self) -> Option<Instant> {
        let rules = self.rules.iter().filter_map(|rule| rule.decision().until());
        let once = self.once.as_ref().and_then(Once::due_at);
        rules.chain(self.write_at).chain(once).min()
    }

    fn publish(&self) {
        let status = Status {
            version: env!("CARGO_PKG_VERSION"),
            node: NodeStatus {
                name: self.node_name.clone(),
                seen: self.seen,
                resource_version: self.latest.get().map(|node| node.resource_version),
            },
            api: self.api_status.clone(),
            rules: self.rules.iter().map(RuleAtWork::status).collect(),
        };
        self.status.send_if_modified(|known| {
            known.as_ref() != Some(&status) && {
                *known = Some(status);
                true
            }
        });
    }
}

/// The taints that wait for nothing but a write.
fn ready(rules: &[RuleAtWork]) -> Vec<&TaintMatcher> {
    rules
        .iter()
        .filter(|rule| rule.wants_removal())
        .map(|rule| &rule.rule().taint)
        .collect()
}

/// The answer to the request under way; for ever, if there is none.
async fn answered(pending: &mut Option<Pending<'_>>) -> (Call, Answer) {
    let Some((_, answer)) = pending else {
        return std::future::pending().await;
    };
    let answer = answer.await;
    match pending.take() {
        Some((call, _)) => (call, answer),
        None => std::future::pending().await,
    }
}
