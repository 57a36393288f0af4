//! Gates that look at objects of this node through the API server. Each watches only while it can matter.

mod csi_driver;
mod node;
mod pods;
mod since_boot;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use tokio::sync::{mpsc, watch};
use tracing::{info, warn};

use super::Outcome;
use super::report::Reporter;
use crate::api::object::Object;
use crate::api::watch::{Collection, WatchUpdate};
use crate::api::{ApiServer, watch as api_watch};
use crate::boot::Span;
use crate::config::{Observation, Observed};
use crate::node::view::NodeView;
use crate::rate_limit::Repetition;

pub use since_boot::{NodeWitness, SinceBoot};

/// WatchUpdate that wait to be looked at. The watch waits when it is full.
const QUEUE: usize = 16;

/// What observations look at.
#[derive(Clone)]
pub struct ObservationContext {
    /// `None` where there is no API server to ask.
    pub api: Option<Arc<ApiServer>>,
    /// The own Node's.
    pub node_name: String,
    /// The own Node, by the agent's watch.
    pub node: watch::Receiver<NodeSnapshot>,
    /// Whether a taint waits only for the API server.
    pub urgent: watch::Receiver<bool>,
}

impl ObservationContext {
    /// Nothing to look at: every observation is unknown.
    pub fn none() -> Self {
        let (_, node) = watch::channel(NodeSnapshot::default());
        let (_, urgent) = watch::channel(false);
        Self {
            api: None,
            node_name: String::new(),
            node,
            urgent,
        }
    }
}

/// What the agent knows of the own Node.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct NodeSnapshot {
    /// The newest Node.
    pub node: Option<NodeView>,
    /// Whether that is how things are: the watch is up.
    pub watching: bool,
    /// What of it was written since the machine booted.
    pub since_boot: SinceBoot,
}

impl NodeSnapshot {
    /// The Node as it is now, or why that is unknown.
    fn now(&self) -> Result<&NodeView, Outcome> {
        if !self.watching {
            return Err(Outcome::Unknown("the Node cannot be watched now".into()));
        }
        let node = self.node.as_ref();
        let node = node.ok_or_else(|| Outcome::Unknown("there is no such Node".into()))?;
        match &self.since_boot.kubelet {
            Some(reason) => Err(Outcome::Unknown(reason.clone())),
            None => Ok(node),
        }
    }
}

/// What is seen of the Node.
pub(super) struct Judgement {
    /// What it amounts to.
    pub(super) outcome: Outcome,
    /// For how long, unless the Node changes; `None`: for ever.
    pub(super) lasts: Option<Duration>,
}

impl From<Outcome> for Judgement {
    fn from(outcome: Outcome) -> Self {
        Self {
            outcome,
            lasts: None,
        }
    }
}

/// What an observation of the Node itself amounts to; `None` if it is of other objects. The agent asks before each
/// decision, so that no decision is made on a Node that the gates have not seen.
pub(super) fn of_node(
    spec: &Observation,
    sight: &NodeSnapshot,
    clock: Timestamp,
) -> Option<Judgement> {
    let judge =
        |judge: &dyn Fn(&NodeView) -> Judgement| sight.now().map_or_else(Judgement::from, judge);
    match &spec.object {
        Observed::Allocatable(spec) => Some(judge(&|node| node::allocatable(spec, node).into())),
        Observed::NodeCondition(spec) => Some(judge(&|node| {
            node::condition(spec, node, &sight.since_boot, clock)
        })),
        Observed::CsiDriver(_) | Observed::Pods(_) => None,
    }
}

/// Looks at other objects for ever, and reports changes.
pub(super) async fn follow(spec: Observation, sight: ObservationContext, mut reporter: Reporter) {
    if sight.api.is_none() {
        reporter.report(&without_api_server()).await;
        return;
    }
    match spec.object {
        Observed::CsiDriver(spec) => {
            let collection = csi_driver::collection(&sight.node_name);
            let judge = |objects: &_, _: &_| csi_driver::judge(&spec, objects);
            follow_objects(sight, collection, reporter, judge).await;
        }
        Observed::Pods(spec) => {
            let collection = pods::collection(&spec, &sight.node_name);
            let mut witnesses = pods::Witnesses::default();
            let judge = |objects: &_, since_boot: &SinceBoot| {
                let leftovers = witnesses.see(objects, since_boot, Span::now());
                pods::judge(&spec, objects, &leftovers)
            };
            follow_objects(sight, collection, reporter, judge).await;
        }
        Observed::Allocatable(_) | Observed::NodeCondition(_) => {}
    }
}

/// What an observation is without an API server.
pub(super) fn without_api_server() -> Outcome {
    Outcome::Unknown("is known only from the API server, which this command does not ask".into())
}

/// Looks only while the Node is known as it is now. Before, its taint may not be there; and when the API server comes
/// back after an outage, both watches are up again at the same time, whatever their backoffs.
async fn follow_objects<T: Object>(
    mut sight: ObservationContext,
    collection: Collection,
    mut reporter: Reporter,
    mut judge: impl FnMut(&HashMap<String, T>, &SinceBoot) -> Outcome,
) {
    let Some(api) = sight.api else { return };
    let mut failure = Repetition::default();
    loop {
        let unknown = sight.node.borrow_and_update().now().err();
        if let Some(unknown) = unknown {
            reporter.report(&unknown).await;
            if sight.node.changed().await.is_err() {
                return std::future::pending().await;
            }
            continue;
        }
        let (news, heard) = mpsc::channel(QUEUE);
        let known = sight.node.clone();
        tokio::select! {
            () = api_watch::run(&api, collection.clone(), news, sight.urgent.clone()) => {}
            () = listen(heard, &collection.path, known, &mut failure, &mut reporter, &mut judge) => {}
            () = until_unknown(&mut sight.node) => {}
        }
    }
}

/// Returns when the Node is not known as it is now.
async fn until_unknown(node: &mut watch::Receiver<NodeSnapshot>) {
    if node.wait_for(|node| node.now().is_err()).await.is_err() {
        // Nobody tells any more.
        std::future::pending::<()>().await;
    }
}

/// Judges the objects at each news of their watch or of the Node, and reports. Returns at the end of the watch.
async fn listen<T: Object>(
    mut heard: mpsc::Receiver<WatchUpdate<T>>,
    path: &str,
    mut node: watch::Receiver<NodeSnapshot>,
    failure: &mut Repetition,
    reporter: &mut Reporter,
    mut judge: impl FnMut(&HashMap<String, T>, &SinceBoot) -> Outcome,
) {
    let mut objects: HashMap<String, T> = HashMap::new();
    let mut is_synced = false;
    loop {
        let news = tokio::select! {
            news = heard.recv() => match news {
                Some(news) => Some(news),
                None => return,
            },
            Ok(()) = node.changed() => None,
        };
        match news {
            Some(WatchUpdate::Apply(object)) => {
                objects.insert(object.metadata().uid.clone(), object);
            }
            Some(WatchUpdate::Delete(uid)) => _ = objects.remove(&uid),
            Some(WatchUpdate::InitDone) => {
                is_synced = true;
                if failure.end() {
                    info!(path, "watching for a gate again");
                }
            }
            // `InitDone` follows when all objects have been sent again.
            Some(WatchUpdate::Init | WatchUpdate::Ended(None)) | None => {}
            Some(WatchUpdate::Ended(Some(error))) => {
                is_synced = false;
                let error = error.to_string();
                if failure.is_news(Instant::now(), &error) {
                    warn!(path, error, "failed to watch for a gate; trying again");
                }
                let reason = format!("cannot watch {path}: {error}");
                reporter.report(&Outcome::Unknown(reason)).await;
            }
            Some(WatchUpdate::Stale) => {
                is_synced = false;
                let reason = format!("cannot watch {path} now: the next watch takes long to begin");
                reporter.report(&Outcome::Unknown(reason)).await;
            }
        }
        if is_synced {
            let outcome = judge(&objects, &node.borrow().since_boot);
            reporter.report(&outcome).await;
        }
    }
}

#[cfg(test)]
mod tests;
