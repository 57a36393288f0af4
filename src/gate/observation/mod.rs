//! Gates that observe objects of this node through the API server. Each kind has one file, which is pure.

mod allocatable;
mod csi_driver;
mod follow;
mod node_condition;
mod node_label;
mod pods;

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use jiff::Timestamp;

use super::report::Reporter;
use super::{GateContext, NodeFreshness, NodeSnapshot, Outcome};
use crate::boot::Uptime;
use crate::config::{Observation, ObservedObject};
use follow::follow_objects;

/// The outcome of an observation.
pub(super) struct Judgement {
    pub(super) outcome: Outcome,
    /// For how long, if the objects do not change; `None` is forever.
    pub(super) valid_for: Option<Duration>,
}

impl From<Outcome> for Judgement {
    fn from(outcome: Outcome) -> Self {
        Self {
            outcome,
            valid_for: None,
        }
    }
}

/// The outcome of an observation of the Node itself; `None` if it is of other objects. The agent calls this before each
/// decision, so that it never decides on a Node that the gates have not observed.
pub(super) fn observe_node(
    spec: &Observation,
    snapshot: &NodeSnapshot,
    clock: Timestamp,
) -> Option<Judgement> {
    Some(match (&spec.object, snapshot.current()) {
        (ObservedObject::CsiDriver(_) | ObservedObject::Pods(_), _) => return None,
        (_, Err(reason)) => Outcome::Unknown(reason).into(),
        (ObservedObject::Allocatable(spec), Ok(node)) => allocatable::judge(spec, node).into(),
        (ObservedObject::NodeCondition(spec), Ok(node)) => {
            node_condition::judge(spec, node, &snapshot.freshness, clock)
        }
        (ObservedObject::NodeLabel(spec), Ok(node)) => node_label::judge(spec, node).into(),
    })
}

/// What an observation keeps of its round while nobody watches: which statuses were written in this boot, and which
/// DaemonSets had pods. It has no outcomes.
#[derive(Debug, Clone, Default)]
pub(super) struct Memory(Arc<Mutex<pods::Tracker>>);

/// Watches objects other than the Node forever, and reports changes.
pub(super) async fn follow(
    spec: Observation,
    context: GateContext,
    memory: Memory,
    mut reporter: Reporter,
) {
    let (Some(api), Some(node)) = (context.api.clone(), context.node_name.clone()) else {
        return reporter.report(&without_api_server()).await;
    };
    match spec.object {
        ObservedObject::CsiDriver(spec) => {
            let collection = csi_driver::collection(&node);
            let judge = |objects: &_, _: &_| csi_driver::judge(&spec, objects).into();
            follow_objects(&api, collection, context, reporter, judge).await;
        }
        ObservedObject::Pods(spec) => {
            let collection = pods::collection(&spec, &node);
            let (taints, waiting_pod) = (context.taints.clone(), context.waiting_pod.clone());
            let judge = |objects: &_, freshness: &NodeFreshness| {
                let tracker = &mut memory.0.lock().unwrap_or_else(PoisonError::into_inner);
                let known = pods::Known {
                    stale: tracker.stale(objects, freshness, Uptime::now()),
                    taints: &taints,
                    waiting_pod: waiting_pod.as_deref(),
                    now: Instant::now(),
                    clock: Timestamp::now(),
                };
                pods::judge(&spec, objects, &known, &mut tracker.departures)
            };
            follow_objects(&api, collection, context, reporter, judge).await;
        }
        ObservedObject::Allocatable(_)
        | ObservedObject::NodeCondition(_)
        | ObservedObject::NodeLabel(_) => {}
    }
}

pub(super) fn without_api_server() -> Outcome {
    Outcome::Unknown(
        "this gate needs the API server, which this command does not use: look at /statusz of the agent, or use untaint \
         run --once"
            .into(),
    )
}
