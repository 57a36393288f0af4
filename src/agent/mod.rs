//! The only composer: brings the watch, the gates, the decisions and the writes together in one loop.

mod calls;
mod conditions;
mod connection;
mod node_watch;
mod notifier;
mod once;
mod pending;
mod reload;
mod renewal;
mod rule;
mod self_check;
mod snapshot;

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::sleep_until;
use tracing::warn;

use crate::api::ApiServer;
use crate::api::watch::{self as api_watch, WatchUpdate};
use crate::boot::{self, Boot};
use crate::events;
use crate::gate::report::Update;
use crate::gate::{FreshnessTracker, GateContext, NodeFreshness, NodeSnapshot};
use crate::incident::Incident;
use crate::metrics::Counters;
use crate::node;
use crate::node::patch::Change;
use crate::node::self_check::SelfCheck;
use crate::node::view::{Latest, NodeView};
use crate::node::writes::Writes;
use crate::reload::{Loaded, Reload};
use crate::status::{ConfigurationStatus, Status};
use conditions::ConditionWrites;
use connection::Connection;
use notifier::Notifier;
use once::Once;
use pending::Pending;
use renewal::Renewal;
use rule::RuleRunner;

/// Watch news and gate updates that wait for the loop. Senders wait when it is full: nothing is dropped.
const QUEUE: usize = 16;

/// When the loop comes round later than it should by more than this, the process, its cgroup or the machine stood still.
const PAUSE: Duration = Duration::from_secs(1);

/// What the agent is to do.
#[derive(Debug, Clone)]
pub struct Options {
    /// The own Node, by its `metadata.name`.
    pub node_name: String,
    /// Return once every configured taint has been gone for so long.
    pub once: Option<Duration>,
    /// Write nothing, whatever the rules say.
    pub dry_run: bool,
    /// See whether a policy holds the account.
    pub policy_check: bool,
    /// Count here what happens.
    pub counters: Counters,
    /// Tell of it here, where the configuration says so.
    pub events: Option<events::Sender>,
}

/// Answers that the loop is alive.
pub type Ping = oneshot::Sender<()>;

/// Runs for ever or, with [`Options::once`], until the Node is free of the configured taints. Begins with the
/// configuration `loaded`, and goes on with those that come by `reloads`.
pub async fn run(
    loaded: Loaded,
    reloads: mpsc::Receiver<Reload>,
    api: Arc<ApiServer>,
    options: Options,
    status: watch::Sender<Option<Status>>,
    pings: mpsc::Receiver<Ping>,
) {
    let (news, heard) = mpsc::channel(QUEUE);
    let (urgent, is_urgent) = watch::channel(false);
    let collection = node::collection(&options.node_name);
    let watching = api_watch::run(&api, collection, news, is_urgent);
    let agent = Agent::new(loaded, &api, options, status, urgent);
    tokio::select! {
        () = agent.work(heard, reloads, pings) => {}
        () = watching => {}
    }
}

struct Agent<'a> {
    api: &'a ApiServer,
    node_name: String,
    dry_run: bool,
    configuration: ConfigurationStatus,
    rules: Vec<RuleRunner>,
    /// For the gates of rules to come.
    context: GateContext,
    notifier: Notifier,
    /// The boot that this process came up with, if it did.
    boot: Option<Boot>,
    latest: Latest,
    /// Judges what of the Node was written since the boot.
    freshness_tracker: FreshnessTracker,
    freshness: NodeFreshness,
    seen: bool,
    writes: Writes,
    /// When the writes have something to do by time alone.
    write_at: Option<Instant>,
    conditions: ConditionWrites,
    /// `None`: switched off.
    self_check: Option<SelfCheck>,
    /// When it has something to do by time alone.
    check_at: Option<Instant>,
    renewal: Renewal,
    once: Option<Once>,
    urgent: watch::Sender<bool>,
    connection: Connection,
    /// The last of any request, be it the agent's or not.
    failures: watch::Receiver<Option<Incident>>,
    /// For the gates that look at the Node.
    sight: watch::Sender<NodeSnapshot>,
    status: watch::Sender<Option<Status>>,
    updates: mpsc::Receiver<Update>,
}

impl<'a> Agent<'a> {
    fn new(
        loaded: Loaded,
        api: &'a Arc<ApiServer>,
        options: Options,
        status: watch::Sender<Option<Status>>,
        urgent: watch::Sender<bool>,
    ) -> Self {
        let self_check = self_check::begin(&options);
        let (sender, updates) = mpsc::channel(QUEUE);
        let (sight, node) = watch::channel(NodeSnapshot::default());
        let context = GateContext {
            updates: sender,
            api: Some(Arc::clone(api)),
            node_name: options.node_name.clone(),
            node,
            urgent: urgent.subscribe(),
        };
        let mut agent = Self {
            api,
            node_name: options.node_name,
            dry_run: options.dry_run,
            configuration: loaded.status,
            rules: Vec::new(),
            context,
            notifier: Notifier::new(options.counters, options.events),
            boot: boot::just_now(),
            latest: Latest::default(),
            freshness_tracker: FreshnessTracker::new(boot::id()),
            freshness: NodeFreshness::default(),
            seen: false,
            writes: Writes::default(),
            write_at: None,
            conditions: ConditionWrites::default(),
            self_check,
            check_at: None,
            renewal: Renewal::default(),
            once: options.once.map(Once::new),
            urgent,
            connection: Connection::default(),
            failures: api.last_failure(),
            sight,
            status,
            updates,
        };
        agent.follow(loaded.configuration);
        // Rules that come later have not come up with the boot.
        agent.boot = None;
        agent
    }

    async fn work(
        mut self,
        mut heard: mpsc::Receiver<WatchUpdate<NodeView>>,
        mut reloads: mpsc::Receiver<Reload>,
        mut pings: mpsc::Receiver<Ping>,
    ) {
        let mut pending = Pending::NONE;
        let mut writing = Pending::NONE;
        let mut checking = Pending::NONE;
        let mut alive_until = None;
        loop {
            // All that is known comes before what follows from it.
            while let Ok(news) = heard.try_recv() {
                self.hear(news);
            }
            while let Ok(reload) = reloads.try_recv() {
                self.reload(reload, &mut pending, &mut writing);
            }
            let now = Instant::now();
            while let Ok(update) = self.updates.try_recv() {
                self.take(now, &update);
            }
            if alive_until.is_some_and(|limit| now > limit + PAUSE) {
                warn!("stood still; evaluating the gates afresh");
                self.rules.iter_mut().for_each(|rule| rule.paused(now));
            }
            // While a change is under way, what happens to its taints may be its own doing: its answer decides.
            self.step(now, pending.change());
            if pending.is_none() {
                pending = self.next_call(now);
            }
            if writing.is_none() {
                writing = self.next_condition(now);
            }
            if checking.is_none() {
                let idle = pending.is_none() && writing.is_none();
                checking = self.next_self_check(now, idle);
            }
            self.wait_for_credentials();
            self.update_status();
            // While open gates count for something, it must be noticed when this loop does not run.
            let counts = self.rules.iter().any(RuleRunner::counts_on_gates);
            alive_until = counts.then(|| now + PAUSE);
            let wake = self
                .wake_at(&pending, &writing)
                .into_iter()
                .chain(self.check_at)
                .chain(alive_until)
                .min();
            tokio::select! {
                Some(news) = heard.recv() => self.hear(news),
                Some(reload) = reloads.recv() => self.reload(reload, &mut pending, &mut writing),
                Some(update) = self.updates.recv() => self.take(Instant::now(), &update),
                (call, answer) = pending.answered() => {
                    if self.take_answer(&call, answer) {
                        self.update_status();
                        return;
                    }
                }
                (write, answer) = writing.answered() => self.take_condition(&write, answer),
                (probe, answer) = checking.answered() => self.take_self_check(&probe, &answer),
                () = self.renewal.done() => self.credentials_renewed(),
                // For the snapshot alone.
                Ok(()) = self.failures.changed() => {}
                () = sleep_until(wake.unwrap_or(now).into()), if wake.is_some() => {}
                Some(ping) = pings.recv() => { let _ = ping.send(()); }
            }
        }
    }

    /// All rules but those whose taint is in the `change` under way decide anew.
    fn step(&mut self, now: Instant, change: Option<&Change>) {
        let sight = NodeSnapshot {
            node: self.latest.get().cloned(),
            watching: self.connection.is_watching(),
            freshness: self.freshness.clone(),
        };
        for rule in &mut self.rules {
            if !rule.is_in(change) {
                rule.step(now, &sight);
            }
        }
        self.sight.send_if_modified(|known| {
            *known != sight && {
                *known = sight;
                true
            }
        });
        let node = self.latest.get();
        let urgent = self.rules.iter().any(RuleRunner::waits_for_api);
        self.urgent
            .send_if_modified(|known| std::mem::replace(known, urgent) != urgent);
        if let Some(once) = &mut self.once {
            let is_left = |node| {
                self.self_check
                    .as_ref()
                    .is_some_and(|check| check.has_left(node))
            };
            let settled =
                node.is_some_and(|node| !node.may_be_tainted_by_karpenter() && !is_left(node));
            once.step(now, settled && self.rules.iter().all(RuleRunner::is_done));
        }
    }

    /// Takes in what a condition reported; nothing comes of it if its gate is not configured any more.
    fn take(&mut self, now: Instant, update: &Update) {
        for rule in &mut self.rules {
            if rule.take(now, update) {
                return;
            }
        }
    }
}
