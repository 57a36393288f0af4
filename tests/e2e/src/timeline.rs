//! What happens in the cluster, and when: printed, waited for, and kept.

mod kind;

use std::collections::BTreeMap;
use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use anyhow::{Context as _, Result};
use futures_util::StreamExt as _;
use http::Request;
use kube::Client;
use kube::core::WatchEvent;
use serde_json::Value;
use tokio::sync::watch;
use tokio::time::{sleep, timeout};

use self::kind::Kind;

/// How long a scenario waits for anything.
pub(crate) const DEADLINE: Duration = Duration::from_mins(1);

/// All objects of interest at one time.
#[derive(Clone, Default)]
pub(crate) struct World {
    /// By name.
    pub(crate) nodes: BTreeMap<String, Arc<Value>>,
    /// By namespace and name: `default/app`.
    pub(crate) pods: BTreeMap<String, Arc<Value>>,
    /// By name.
    pub(crate) csi_nodes: BTreeMap<String, Arc<Value>>,
    /// By namespace and name.
    pub(crate) daemon_sets: BTreeMap<String, Arc<Value>>,
}

/// The states of the cluster, in the order of their arrival.
pub(crate) struct Timeline {
    start: SystemTime,
    states: watch::Sender<Vec<State>>,
}

/// A state of the cluster.
struct State {
    arrived: SystemTime,
    /// The resource version of the object whose change made this state.
    version: Option<u64>,
    world: World,
}

impl Timeline {
    /// Begins to watch.
    pub(crate) fn follow(client: &Client) -> Arc<Self> {
        let timeline = Arc::new(Self {
            start: SystemTime::now(),
            states: watch::Sender::new(vec![State {
                arrived: SystemTime::now(),
                version: None,
                world: World::default(),
            }]),
        });
        for kind in Kind::ALL {
            tokio::spawn(Arc::clone(&timeline).follow_kind(client.clone(), kind));
        }
        timeline
    }

    /// Prints a line with the seconds since the start.
    pub(crate) fn say(&self, text: &str) {
        println!("{:8.3}  {text}", self.seconds(SystemTime::now()));
    }

    /// The seconds from the start to `time`.
    fn seconds(&self, time: SystemTime) -> f64 {
        time.duration_since(self.start)
            .unwrap_or_default()
            .as_secs_f64()
    }

    /// Waits until `find` finds something in the state of the cluster, and returns it. The error says `what` is missing.
    pub(crate) async fn until<T>(
        &self,
        what: &str,
        find: impl Fn(&World) -> Option<T>,
    ) -> Result<T> {
        let (_, found) = self.found(what, find).await?;
        Ok(found)
    }

    /// Waits until `holds` is true, and returns when that state arrived.
    pub(crate) async fn wait(
        &self,
        what: &str,
        holds: impl Fn(&World) -> bool,
    ) -> Result<SystemTime> {
        let (time, ()) = self.found(what, |world| holds(world).then_some(())).await?;
        Ok(time)
    }

    async fn found<T>(
        &self,
        what: &str,
        find: impl Fn(&World) -> Option<T>,
    ) -> Result<(SystemTime, T)> {
        let mut states = self.states.subscribe();
        let found = async {
            loop {
                let found = states
                    .borrow_and_update()
                    .last()
                    .and_then(|state| Some((state.arrived, find(&state.world)?)));
                if let Some(found) = found {
                    return anyhow::Ok(found);
                }
                states.changed().await?;
            }
        };
        let found = timeout(DEADLINE, found).await;
        found.with_context(|| format!("not within {} s: {what}", DEADLINE.as_secs()))?
    }

    /// When `holds` was true for the first time.
    pub(crate) fn when(&self, holds: impl Fn(&World) -> bool) -> Option<SystemTime> {
        self.when_after(SystemTime::UNIX_EPOCH, holds)
    }

    /// When `holds` was true for the first time after `from`.
    pub(crate) fn when_after(
        &self,
        from: SystemTime,
        holds: impl Fn(&World) -> bool,
    ) -> Option<SystemTime> {
        let (arrived, _) = self.first_after(from, holds)?;
        Some(arrived)
    }

    /// The version of the change that made `holds`, a statement about one object, true for the first time.
    ///
    /// Each kind has a watch of its own, and two watches can deliver their events in any order. All kinds are in one
    /// etcd, whose revisions are the resource versions. So these give the order of changes to objects of two kinds.
    pub(crate) fn version_when(&self, holds: impl Fn(&World) -> bool) -> Option<u64> {
        self.version_after(SystemTime::UNIX_EPOCH, holds)
    }

    /// The same for the first time after `from`, when it is not true.
    pub(crate) fn version_after(
        &self,
        from: SystemTime,
        holds: impl Fn(&World) -> bool,
    ) -> Option<u64> {
        let (_, version) = self.first_after(from, holds)?;
        version
    }

    fn first_after(
        &self,
        from: SystemTime,
        holds: impl Fn(&World) -> bool,
    ) -> Option<(SystemTime, Option<u64>)> {
        let states = self.states.borrow();
        let mut later = states.iter().filter(|state| state.arrived >= from);
        let found = later.find(|state| holds(&state.world))?;
        Some((found.arrived, found.version))
    }

    /// Whether these times or versions are all known, and each is before the next.
    pub(crate) fn in_order<T: Ord>(times: &[Option<T>]) -> bool {
        times.iter().all(Option::is_some) && times.is_sorted()
    }

    /// Watches for ever. While the API server is away, the last state stays.
    async fn follow_kind(self: Arc<Self>, client: Client, kind: Kind) {
        let mut told = BTreeMap::new();
        loop {
            let _ = self.watch(&client, kind, &mut told).await;
            sleep(Duration::from_millis(100)).await;
        }
    }

    /// Without a version, a watch starts with the current state. An object that was deleted between two watches stays in
    /// the world.
    async fn watch(
        &self,
        client: &Client,
        kind: Kind,
        told: &mut BTreeMap<String, String>,
    ) -> Result<()> {
        let request = Request::get(format!("{}?watch=true", kind.path())).body(Vec::new())?;
        let mut events = pin!(client.request_events::<Value>(request).await?);
        while let Some(event) = events.next().await {
            let (object, is_there) = match event? {
                WatchEvent::Added(object) | WatchEvent::Modified(object) => (object, true),
                WatchEvent::Deleted(object) => (object, false),
                _ => continue,
            };
            self.note(kind, object, is_there, told);
        }
        Ok(())
    }

    fn note(&self, kind: Kind, object: Value, is_there: bool, told: &mut BTreeMap<String, String>) {
        let now = SystemTime::now();
        let metadata = &object["metadata"];
        let name = metadata["name"].as_str().unwrap_or_default();
        let name = match metadata["namespace"].as_str() {
            Some(namespace) => format!("{namespace}/{name}"),
            None => name.to_owned(),
        };
        let version = metadata["resourceVersion"].as_str();
        let version = version.and_then(|version| version.parse().ok());
        let lines = kind.describe(&name, &object);
        for (subject, text) in lines {
            let text = if is_there { text } else { "deleted".to_owned() };
            if told.get(&subject) != Some(&text) {
                println!("{:8.3}  {subject}: {text}", self.seconds(now));
                told.insert(subject, text);
            }
        }
        self.states.send_modify(|states| {
            let mut world = states
                .last()
                .map(|state| state.world.clone())
                .unwrap_or_default();
            let objects = kind.of(&mut world);
            if is_there {
                objects.insert(name, Arc::new(object));
            } else {
                objects.remove(&name);
            }
            states.push(State {
                arrived: now,
                version,
                world,
            });
        });
    }
}

/// The status of a condition, or `-`.
pub(crate) fn condition<'a>(object: &'a Value, kind: &str) -> &'a str {
    let conditions = object["status"]["conditions"].as_array();
    let found = conditions.and_then(|list| list.iter().find(|one| one["type"] == kind));
    found.and_then(|one| one["status"].as_str()).unwrap_or("-")
}

impl World {
    /// Whether the Node exists and is Ready.
    pub(crate) fn is_ready(&self, node: &str) -> bool {
        let node = self.nodes.get(node);
        node.is_some_and(|node| condition(node, "Ready") == "True")
    }

    /// Whether the Node exists and has a taint with this key.
    pub(crate) fn has_taint(&self, node: &str, key: &str) -> bool {
        self.taint_keys(node)
            .is_some_and(|keys| keys.iter().any(|one| one == key))
    }

    /// Whether the Node exists and has no taint with this key.
    pub(crate) fn lacks_taint(&self, node: &str, key: &str) -> bool {
        self.taint_keys(node)
            .is_some_and(|keys| keys.iter().all(|one| one != key))
    }

    fn taint_keys(&self, node: &str) -> Option<Vec<String>> {
        let node = self.nodes.get(node)?;
        let taints = node["spec"]["taints"].as_array().into_iter().flatten();
        Some(
            taints
                .filter_map(|taint| Some(taint["key"].as_str()?.to_owned()))
                .collect(),
        )
    }

    /// The pods of this namespace whose names start with `prefix`.
    pub(crate) fn pods_like(&self, prefix: &str) -> impl Iterator<Item = &Arc<Value>> {
        let pods = self
            .pods
            .iter()
            .filter(move |(name, _)| name.starts_with(prefix));
        pods.map(|(_, pod)| pod)
    }

    /// How the first container of this pod has ended.
    pub(crate) fn ended(&self, pod: &str) -> Option<Value> {
        let state = &self.pods.get(pod)?["status"]["containerStatuses"][0]["state"];
        Some(state.get("terminated")?.clone())
    }

    /// Whether such a pod is Ready.
    pub(crate) fn pod_is_ready(&self, prefix: &str) -> bool {
        self.pods_like(prefix)
            .any(|pod| condition(pod, "Ready") == "True")
    }
}
