//! The loop that joins the watch, the gates, the decisions and the writes. Nothing else composes them.

mod conditions;
mod connection;
mod node_watch;
mod notifier;
mod once;
mod pause;
mod put_backs;
mod reload;
mod requests;
mod rule;
mod self_check;
mod slot;
mod status;
mod taints;

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::{Notify, mpsc, oneshot, watch};
use tokio::time::sleep_until;

use crate::api::ApiServer;
use crate::api::watch::{self as api_watch, WatchUpdate};
use crate::boot::{self, Moment};
use crate::events;
use crate::gate::GateContext;
use crate::gate::report::Update;
use crate::gate::{FreshnessTracker, NodeFreshness, NodeSnapshot};
use crate::incident::Incident;
use crate::metrics::Counters;
use crate::node;
use crate::node::self_check::SelfCheck;
use crate::node::view::{Latest, NodeView};
use crate::node::writes::Writes;
use crate::rate_limit::TokenBucket;
use crate::reload::{Loaded, Reload};
use crate::rule::{PutBacks, RuleState};
use crate::status::{ConfigurationStatus, Status};
use conditions::ConditionWrites;
use connection::Connection;
use notifier::Notifier;
use once::Once;
use pause::Pauses;
use requests::Slots;
use rule::RuleRunner;
use slot::Renewal;

/// Updates from the watch and from gates that wait for the loop. Senders wait when it is full: nothing is dropped.
const QUEUE: usize = 16;

#[derive(Debug, Clone)]
pub struct Options {
    /// The own Node, by its `metadata.name`.
    pub node_name: String,
    /// Return once every configured taint has been gone for this long.
    pub once: Option<Duration>,
    /// Write nothing.
    pub dry_run: bool,
    /// Check whether a policy restricts the account.
    pub policy_check: bool,
    pub counters: Counters,
    /// Where to send Events, if the configuration asks for them.
    pub events: Option<events::Sender>,
}

/// The loop answers while it is alive.
pub type Ping = oneshot::Sender<()>;

/// Runs without end or, with [`Options::once`], until the Node is free of the configured taints. Follows the configuration
/// `loaded`, and then those that come by `reloads`.
pub async fn run(
    loaded: Loaded,
    reloads: mpsc::Receiver<Reload>,
    api: Arc<ApiServer>,
    options: Options,
    status: watch::Sender<Option<Status>>,
    pings: mpsc::Receiver<Ping>,
) {
    let (updates, watched) = mpsc::channel(QUEUE);
    let (urgent, is_urgent) = watch::channel(false);
    let collection = node::collection(&options.node_name);
    let watch_again = Notify::new();
    let watching = async {
        loop {
            let (updates, is_urgent) = (updates.clone(), is_urgent.clone());
            tokio::select! {
                () = api_watch::run(&api, collection.clone(), updates, is_urgent) => return,
                () = watch_again.notified() => {}
            }
        }
    };
    let agent = Agent::new(loaded, &api, &options, status, urgent, &watch_again);
    tokio::select! {
        () = agent.work(watched, reloads, pings) => {}
        () = watching => {}
    }
}

struct Agent<'a> {
    api: &'a ApiServer,
    options: &'a Options,
    configuration: ConfigurationStatus,
    rules: Vec<RuleRunner>,
    /// For the gates of new rules.
    context: GateContext,
    notifier: Notifier,
    latest: Latest,
    freshness_tracker: FreshnessTracker,
    freshness: NodeFreshness,
    node_seen: bool,
    writes: Writes,
    put_backs: PutBacks,
    /// Labels that flap, or a denial whose text changes each time, must not fill the log.
    left_allowance: TokenBucket,
    condition_writes: ConditionWrites,
    /// `None`: switched off.
    self_check: Option<SelfCheck>,
    once: Option<Once>,
    slots: Slots<'a>,
    renewal: Renewal,
    pauses: Pauses<'a>,
    urgent: watch::Sender<bool>,
    connection: Connection,
    /// The last failure of any request, including those of gates and Events.
    failures: watch::Receiver<Option<Incident>>,
    /// For the gates that look at the Node.
    snapshots: watch::Sender<NodeSnapshot>,
    status: watch::Sender<Option<Status>>,
    gate_updates: mpsc::Receiver<Update>,
}

impl<'a> Agent<'a> {
    fn new(
        loaded: Loaded,
        api: &'a Arc<ApiServer>,
        options: &'a Options,
        status: watch::Sender<Option<Status>>,
        urgent: watch::Sender<bool>,
        watch_again: &'a Notify,
    ) -> Self {
        let self_check = self_check::begin(options);
        let (updates, gate_updates) = mpsc::channel(QUEUE);
        let (snapshots, node) = watch::channel(NodeSnapshot::default());
        let context = GateContext {
            updates,
            api: Some(Arc::clone(api)),
            node_name: Some(options.node_name.clone()),
            node,
            urgent: urgent.subscribe(),
            waiting_pod: options.once.and_then(|_| api.own_pod()),
            taints: Vec::new(),
        };
        let mut agent = Self {
            api,
            options,
            configuration: loaded.status,
            rules: Vec::new(),
            context,
            notifier: Notifier {
                counters: options.counters.clone(),
                events: options.events.clone(),
            },
            latest: Latest::default(),
            freshness_tracker: FreshnessTracker::new(boot::id()),
            freshness: NodeFreshness::default(),
            node_seen: false,
            writes: Writes::default(),
            put_backs: PutBacks::default(),
            left_allowance: TokenBucket::LOG_LINES,
            condition_writes: ConditionWrites::default(),
            self_check,
            once: options.once.map(Once::new),
            slots: Slots::default(),
            renewal: Renewal::default(),
            pauses: Pauses::new(watch_again),
            urgent,
            connection: Connection::default(),
            failures: api.last_failure(),
            snapshots,
            status,
            gate_updates,
        };
        agent.follow(loaded.configuration, boot::just_now());
        agent
    }

    async fn work(
        mut self,
        mut watched: mpsc::Receiver<WatchUpdate<NodeView>>,
        mut reloads: mpsc::Receiver<Reload>,
        mut pings: mpsc::Receiver<Ping>,
    ) {
        loop {
            // The agent applies everything that is known before it decides.
            while let Ok(update) = watched.try_recv() {
                self.observe_watch(update);
            }
            while let Ok(reload) = reloads.try_recv() {
                self.reload(reload);
            }
            let moment = Moment::now();
            let now = moment.awake;
            while let Ok(update) = self.gate_updates.try_recv() {
                self.observe_gate(now, &update);
            }
            self.detect_pause(moment);
            self.step(now);
            self.send_requests(now);
            self.update_status();
            let wake = self.wake_at();
            tokio::select! {
                Some(update) = watched.recv() => self.observe_watch(update),
                Some(reload) = reloads.recv() => self.reload(reload),
                Some(update) = self.gate_updates.recv() => self.observe_gate(Instant::now(), &update),
                (request, answer) = self.slots.taints.answered() => self.taints_answered(&request, answer),
                (uid, answer) = self.slots.last_look.answered() => {
                    if self.last_look_answered(&uid, answer) {
                        self.update_status();
                        return;
                    }
                }
                (write, answer) = self.slots.conditions.answered() => self.condition_answered(&write, answer),
                (dry_run, answer) = self.slots.self_check.answered() => self.self_check_answered(&dry_run, &answer),
                () = self.renewal.done() => self.credentials_renewed(),
                // For the status alone.
                Ok(()) = self.failures.changed() => {}
                () = sleep_until(wake.unwrap_or(now).into()), if wake.is_some() => {}
                Some(ping) = pings.recv() => { let _ = ping.send(()); }
            }
        }
    }

    /// All rules decide, except those whose taint is in the change under way: only the answer shows whether the agent changed
    /// the taint.
    fn step(&mut self, now: Instant) {
        self.update_put_backs(now);
        let snapshot = NodeSnapshot {
            node: self.latest.get().cloned(),
            watching: self.connection.is_watching(),
            freshness: self.freshness.clone(),
        };
        let change = self.slots.change();
        for rule in &mut self.rules {
            if !rule.is_changed_by(change) {
                rule.step(now, &snapshot);
            }
        }
        send_if_changed(&self.snapshots, snapshot);
        let is_urgent = self.rules.iter().any(RuleRunner::waits_for_api);
        send_if_changed(&self.urgent, is_urgent);
        let mut states = self.rules.iter().map(|rule| &rule.state);
        let counts_on_gates = states.any(RuleState::counts_on_gates);
        self.pauses.decided(counts_on_gates);
        self.step_once(now);
    }

    /// Ignores the update of a gate that is not configured any more.
    fn observe_gate(&mut self, now: Instant, update: &Update) {
        let mut rules = self.rules.iter_mut();
        rules.any(|rule| rule.observe_gate(now, update));
    }
}

fn send_if_changed<T: PartialEq>(sender: &watch::Sender<T>, value: T) {
    sender.send_if_modified(|known| {
        let changed = *known != value;
        *known = value;
        changed
    });
}
