//! Watches objects for a gate. Each watch is up only while it can matter.

use std::collections::HashMap;
use std::future::pending;

use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, sleep_until};
use tracing::{info, warn};

use super::Judgement;
use crate::api::object::Object;
use crate::api::watch::{Collection, WatchUpdate};
use crate::api::{ApiServer, watch as api_watch};
use crate::gate::report::Reporter;
use crate::gate::{GateContext, NodeFreshness, NodeSnapshot, Outcome};
use crate::rate_limit::RepeatFilter;

/// Updates that wait to be applied. The watch waits while it is full.
const QUEUE: usize = 16;

/// Watches only while the current Node is known. Before that, its taint may not be there. After an outage of the API
/// server, both watches are up again at the same time, whatever their backoffs.
pub(super) async fn follow_objects<T: Object>(
    api: &ApiServer,
    collection: Collection,
    context: GateContext,
    mut reporter: Reporter,
    mut judge: impl FnMut(&HashMap<String, T>, &NodeFreshness) -> Judgement,
) {
    let GateContext {
        mut node, urgent, ..
    } = context;
    let mut failure = RepeatFilter::default();
    loop {
        let unknown = node.borrow_and_update().current().err();
        if let Some(reason) = unknown {
            reporter.report(&Outcome::Unknown(reason)).await;
            if node.changed().await.is_err() {
                return pending().await;
            }
            continue;
        }
        let (sender, updates) = mpsc::channel(QUEUE);
        let known = node.clone();
        tokio::select! {
            () = api_watch::run(api, collection.clone(), sender, urgent.clone()) => {}
            () = apply(updates, &collection.path, known, &mut failure, &mut reporter, &mut judge) => {}
            Ok(_) = node.wait_for(|node| node.current().is_err()) => {}
        }
    }
}

/// Judges the objects at each update of their watch or of the Node and when the last judgement is not valid any more, and
/// reports. Returns at the end of the watch.
async fn apply<T: Object>(
    mut updates: mpsc::Receiver<WatchUpdate<T>>,
    path: &str,
    mut node: watch::Receiver<NodeSnapshot>,
    failure: &mut RepeatFilter,
    reporter: &mut Reporter,
    mut judge: impl FnMut(&HashMap<String, T>, &NodeFreshness) -> Judgement,
) {
    let mut objects: HashMap<String, T> = HashMap::new();
    let mut is_synced = false;
    let mut valid_until = None;
    loop {
        let invalid = async {
            match valid_until {
                Some(until) => sleep_until(until).await,
                None => pending().await,
            }
        };
        let update = tokio::select! {
            update = updates.recv() => match update {
                Some(update) => Some(update),
                None => return,
            },
            Ok(()) = node.changed() => None,
            () = invalid => None,
        };
        match update {
            Some(WatchUpdate::Apply(object)) => {
                objects.insert(object.metadata().uid.clone(), object);
            }
            Some(WatchUpdate::Delete(uid)) => _ = objects.remove(&uid),
            Some(WatchUpdate::InitDone) => {
                is_synced = true;
                if failure.end() {
                    info!(path, "the watch for a gate works again");
                }
            }
            // `InitDone` or another end follows.
            Some(WatchUpdate::Init | WatchUpdate::Ended(None)) | None => {}
            Some(WatchUpdate::Ended(Some(error))) => {
                is_synced = false;
                let error = error.to_string();
                if failure.should_log(std::time::Instant::now(), &error) {
                    warn!(path, error, "failed to watch for a gate; trying again");
                }
                let reason = format!("cannot watch {path}: {error}");
                reporter.report(&Outcome::Unknown(reason)).await;
            }
            Some(WatchUpdate::Stale) => {
                is_synced = false;
                let reason = format!("cannot watch {path} now: the next watch has not started yet");
                reporter.report(&Outcome::Unknown(reason)).await;
            }
        }
        valid_until = None;
        if is_synced {
            let judgement = judge(&objects, &node.borrow().freshness);
            valid_until = judgement.valid_for.map(|time| Instant::now() + time);
            reporter.report(&judgement.outcome).await;
        }
    }
}

#[cfg(test)]
mod tests;
