//! The only composer: brings the watch, the gates, the decisions and the writes together in one loop.

mod calls;
mod connection;
pub(crate) mod gates;
mod once;
mod rule;

use std::time::{Duration, Instant};

use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::sleep_until;
use tracing::{debug, warn};

use crate::api::ApiServer;
use crate::config::Configuration;
use crate::gate::runner::Update;
use crate::node;
use crate::node::removal::Writes;
use crate::node::view::{Latest, NodeView};
use crate::node::watch::WatchNews;
use crate::status::{NodeStatus, Status};
use calls::Pending;
use connection::Connection;
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
    connection: Connection,
    status: watch::Sender<Option<Status>>,
    updates: mpsc::Receiver<Update>,
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
            connection: Connection::default(),
            status,
            updates,
        }
    }

    async fn work(mut self, mut heard: mpsc::Receiver<WatchNews>, mut pings: mpsc::Receiver<Ping>) {
        let mut pending = Pending::default();
        loop {
            let now = Instant::now();
            // While a removal is under way, what happens to its taints may be its own doing: its answer decides.
            if !pending.is_removal() {
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
                (call, answer) = pending.answered() => {
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
        let node = self.latest.get();
        let waits_for_node = |rule: &RuleAtWork| node.is_none() && rule.all_open();
        let mut rules = self.rules.iter();
        let urgent = rules.any(|rule| waits_for_node(rule) || rule.wants_removal());
        self.urgent
            .send_if_modified(|known| std::mem::replace(known, urgent) != urgent);
        if let Some(once) = &mut self.once {
            let settled = node.is_some_and(|node| !node.may_be_tainted_by_karpenter());
            once.step(now, settled && self.rules.iter().all(RuleAtWork::is_done));
        }
    }

    fn hear(&mut self, news: WatchNews) {
        match news {
            WatchNews::Node(node) => self.offer(node),
            WatchNews::Gone(uid) => self.gone(uid.as_deref()),
            WatchNews::Synced => self.connection.watching(),
            WatchNews::Ended(error) => self.connection.watch_ended(error.as_ref()),
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

    fn publish(&self) {
        let status = Status {
            version: env!("CARGO_PKG_VERSION"),
            node: NodeStatus {
                name: self.node_name.clone(),
                seen: self.seen,
                resource_version: self.latest.get().map(|node| node.resource_version),
            },
            api: self.connection.status(),
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
