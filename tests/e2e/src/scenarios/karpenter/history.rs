//! Every state of the objects of one kind, as a watch shows them.

use std::collections::BTreeMap;
use std::pin::pin;
use std::time::SystemTime;

use anyhow::{Context as _, Result, bail};
use futures_util::StreamExt as _;
use http::Request;
use kube::Client;
use kube::core::WatchEvent;
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::timeline::DEADLINE;

/// One state of one object.
#[derive(Clone)]
pub(super) struct State {
    /// When the watch showed it.
    pub(super) at: SystemTime,
    /// The object was deleted in this state.
    pub(super) gone: bool,
    pub(super) object: Value,
}

impl State {
    pub(super) fn name(&self) -> &str {
        self.object["metadata"]["name"].as_str().unwrap_or_default()
    }
}

/// The states so far, oldest first.
pub(super) struct History {
    states: watch::Receiver<Vec<State>>,
    _task: JoinSet<()>,
}

impl History {
    /// Watches a collection, such as `/api/v1/nodes`. The first states are the current ones.
    pub(super) fn of(client: Client, collection: &str) -> Result<Self> {
        let collection = format!("{collection}?watch=true");
        let request = Request::get(&collection).body(Vec::new())?;
        let (sender, states) = watch::channel(Vec::new());
        let mut task = JoinSet::new();
        task.spawn(async move {
            // Those who wait notice that the sender is gone.
            match follow(&client, request, sender).await {
                Ok(()) => println!("{collection} has ended"),
                Err(error) => println!("{collection} has failed: {error:#}"),
            }
        });
        Ok(Self {
            states,
            _task: task,
        })
    }

    pub(super) fn states(&self) -> Vec<State> {
        self.states.borrow().clone()
    }

    /// Waits until `found` finds something in the states, and returns it; fails after [`DEADLINE`].
    pub(super) async fn until<T>(
        &self,
        what: &str,
        mut found: impl FnMut(&[State]) -> Option<T>,
    ) -> Result<T> {
        let mut result = None;
        let mut states = self.states.clone();
        let waiting = states.wait_for(|states| {
            result = found(states);
            result.is_some()
        });
        let ended = timeout(DEADLINE, waiting).await;
        let problem = match &ended {
            Ok(Ok(_)) => None,
            Ok(Err(_)) => Some("the watch has ended"),
            Err(_) => Some("not in time"),
        };
        drop(ended);
        if let Some(problem) = problem {
            let states = self.states.borrow();
            let now: Vec<&Value> = current(&states).into_values().collect();
            bail!("{what}: {problem}: {}", json!(now));
        }
        result.context("a result")
    }

    /// Waits until `count` objects are, in their latest state, as wanted.
    pub(super) async fn until_all(
        &self,
        what: &str,
        count: usize,
        wanted: impl Fn(&Value) -> bool,
    ) -> Result<()> {
        self.until(what, |states| {
            let now = current(states);
            (now.len() == count && now.values().all(|object| wanted(object))).then_some(())
        })
        .await
    }
}

async fn follow(
    client: &Client,
    request: Request<Vec<u8>>,
    states: watch::Sender<Vec<State>>,
) -> Result<()> {
    let mut events = pin!(client.request_events::<Value>(request).await?);
    while let Some(event) = events.next().await {
        let (gone, object) = match event? {
            WatchEvent::Added(object) | WatchEvent::Modified(object) => (false, object),
            WatchEvent::Deleted(object) => (true, object),
            WatchEvent::Bookmark(_) => continue,
            WatchEvent::Error(error) => bail!("{error:?}"),
        };
        let at = SystemTime::now();
        states.send_modify(|states| states.push(State { at, gone, object }));
    }
    Ok(())
}

/// The objects that exist, by name.
pub(super) fn current(states: &[State]) -> BTreeMap<&str, &Value> {
    let mut objects = BTreeMap::new();
    for state in states {
        if state.gone {
            objects.remove(state.name());
        } else {
            objects.insert(state.name(), &state.object);
        }
    }
    objects
}

/// A condition's status, reason and message.
pub(super) fn condition<'a>(object: &'a Value, kind: &str) -> [&'a str; 3] {
    let mut conditions = object["status"]["conditions"]
        .as_array()
        .into_iter()
        .flatten();
    let found = conditions.find(|condition| condition["type"] == kind);
    ["status", "reason", "message"].map(|field| {
        found
            .and_then(|condition| condition[field].as_str())
            .unwrap_or_default()
    })
}

/// The states of one object.
pub(super) fn of<'a>(states: &'a [State], name: &'a str) -> impl Iterator<Item = &'a State> {
    states.iter().filter(move |state| state.name() == name)
}

/// Whether a Node has this taint.
pub(super) fn has(node: &Value, taint: &str) -> bool {
    testkit::taints(node).iter().any(|it| it == taint)
}

/// Whether Karpenter has given a Node this label.
pub(super) fn is(node: &Value, label: &str) -> bool {
    node["metadata"]["labels"][format!("karpenter.sh/{label}")] == "true"
}
