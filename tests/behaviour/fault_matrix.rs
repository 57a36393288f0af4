//! Faults between the agent and the API server. The agent recovers from each without help, within a time limit, and with a
//! limited number of requests.
//!
//! The server is a real API server behind a man in the middle and a fault proxy. The man in the middle gives the answers
//! that a real server cannot be made to give.

mod addresses;
mod answers;
mod connections;
mod credentials;
mod own_server;
mod rotation;
mod strangers;

use std::collections::HashMap;
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use testkit::DEADLINE;
use testkit::api::{ApiServer, Request, Verb};
use testkit::cluster::{self, Cluster, streaming_lists};
use testkit::kubeconfig::point_at;
use testkit::proxy::FaultProxy;
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::scene::{FOREIGN, Gates, TAINT, begins_a_watch, own_taints};

/// Foreign taints, before and after the taint to remove.
const OTHERS: [&str; 2] = ["example.com/before:PreferNoSchedule", FOREIGN];
/// The taints of the Node of each case.
const TAINTS: [&str; 3] = [OTHERS[0], TAINT, OTHERS[1]];
/// Added to the time limits, which are those of the agent's waits, for a busy machine.
const SLACK: Duration = Duration::from_secs(3);

/// The log message for a watch that failed.
const WATCH_FAILED: &str = "failed to watch the Node; trying again";
/// The log message for another request that failed.
const REQUEST_FAILED: &str = "a request failed; trying again";

type Heal = fn(&Scene);

struct Case {
    /// Also the name of the Node.
    name: &'static str,
    when: When,
    fault: Box<dyn FnOnce(&Scene) + Send>,
    /// The log message after which the fault is ended, and how.
    heal: Option<(&'static str, Heal)>,
    spent: Spent,
    within: RangeInclusive<u64>,
}

impl Case {
    /// A fault that ends by itself. `within` has the seconds from when the gates open to the removal.
    fn new(
        name: &'static str,
        when: When,
        fault: impl FnOnce(&Scene) + Send + 'static,
        spent: Spent,
        within: RangeInclusive<u64>,
    ) -> Self {
        Self {
            name,
            when,
            fault: Box::new(fault),
            heal: None,
            spent,
            within,
        }
    }

    /// `heal` ends the fault once the agent has logged `message`. The seconds count from then on.
    fn healed_after(self, message: &'static str, heal: Heal) -> Self {
        Self {
            heal: Some((message, heal)),
            ..self
        }
    }
}

/// When the fault starts.
#[derive(Clone, Copy, PartialEq)]
enum When {
    /// Before the agent starts.
    Start,
    /// While the agent watches, before the gates open.
    Watching,
}

/// The allowed numbers of requests that reach the server, by verb, and of connections that are opened.
struct Spent {
    watches: RangeInclusive<usize>,
    gets: RangeInclusive<usize>,
    patches: RangeInclusive<usize>,
    connections: RangeInclusive<usize>,
}

/// The agent connects to the proxy, the proxy to the man in the middle, and the man in the middle to the real server.
struct Scene {
    gates: Gates,
    kubeconfig: PathBuf,
    /// Another valid token than that of the kubeconfig.
    new_token: String,
    proxy: FaultProxy,
    middle: ApiServer,
}

impl Scene {
    async fn new(cluster: &'static Cluster, name: &'static str) -> Self {
        let gates = Gates::closed().await;
        let kubeconfig = gates.tainted_node(cluster, name, &TAINTS).await;
        let new_token = cluster.token_for_node("untaint", "untaint", name).await;
        let new_token = new_token.unwrap();
        let middle = ApiServer::before(cluster).await.unwrap();
        let proxy = FaultProxy::start(middle.address()).await.unwrap();
        point_at(&kubeconfig, proxy.address()).unwrap();
        let scene = Self {
            gates,
            kubeconfig,
            new_token,
            proxy,
            middle,
        };
        scene.write("ca.crt", &scene.middle.authority());
        scene
    }

    /// Writes one of the files to which the kubeconfig refers.
    fn write(&self, file: &str, content: &str) {
        std::fs::write(self.kubeconfig.with_file_name(file), content).unwrap();
    }

    /// How often the agent has begun to watch the Node.
    fn watches(&self) -> usize {
        let requests = self.middle.requests();
        requests.iter().filter(|sent| is_start(sent)).count()
    }

    fn count(&self, verb: Verb) -> usize {
        let requests = self.middle.requests();
        requests.iter().filter(|sent| sent.verb == verb).count()
    }
}

/// Whether the agent begins to watch the Node with this request, or fails to.
fn is_start(sent: &Request) -> bool {
    matches!(sent.verb, Verb::Watch | Verb::List)
        && begins_a_watch(&sent.uri, sent.status.map(u64::from))
}

/// Runs all cases at the same time. Fails with the names of those that failed.
async fn survive(cases: impl IntoIterator<Item = Case>) {
    let Some(cluster) = cluster::shared().await else {
        return;
    };
    let mut runs = JoinSet::new();
    let mut names = HashMap::new();
    for case in cases {
        let name = case.name;
        names.insert(runs.spawn(run(cluster, case)).id(), name);
    }
    let mut failed = Vec::new();
    while let Some(run) = runs.join_next().await {
        failed.extend(run.err().map(|error| names[&error.id()]));
    }
    assert!(failed.is_empty(), "see above: {failed:?}");
}

async fn run(cluster: &'static Cluster, case: Case) {
    let name = case.name;
    let scene = Scene::new(cluster, name).await;
    let mut fault = Some(case.fault);
    if case.when == When::Start {
        fault.take().unwrap()(&scene);
    }
    let listen = ["--listen", "127.0.0.1:0"];
    let mut agent = scene.gates.agent(name, &scene.kubeconfig, &listen);
    if let Some(fault) = fault {
        agent.wait_for_message("watching the Node").await.unwrap();
        fault(&scene);
    }
    let mut began = Instant::now();
    scene.gates.open_both();
    if let Some((message, heal)) = case.heal {
        agent.wait_for_message(message).await.unwrap();
        began = Instant::now();
        heal(&scene);
    }
    let is_gone = |node: &_| own_taints(node) == OTHERS;
    cluster.wait_for_node(name, is_gone).await.unwrap();
    let took = began.elapsed();
    let (least, most) = (case.within.start(), case.within.end());
    let bounds = Duration::from_secs(*least)..=Duration::from_secs(*most) + SLACK;
    assert!(bounds.contains(&took), "{name}: {took:?}");

    // The fault has ended: the next removal takes one request.
    let unanswered = "the taint is gone, after a removal that the server did not answer";
    let removed = agent.wait_for_log(|line| {
        line["message"] == "removed the taint" || line["message"] == unanswered
    });
    removed.await.unwrap();
    let before = agent.count("removed the taint");
    cluster.set_taints(name, &TAINTS).await.unwrap();
    let again = agent.wait_for_count("removed the taint", before + 1);
    again.await.unwrap();
    assert!(is_gone(&cluster.node(name).await.unwrap()), "{name}");

    // The removal can follow a read of the Node, before the next watch has started.
    let watching = async { while agent.status().await.unwrap()["api"]["watching"] != true {} };
    let watching = timeout(DEADLINE, watching).await;
    assert!(watching.is_ok(), "{name}: does not watch");
    assert!(!agent.has_ended().unwrap(), "{name}");
    let is_error = |line: &&serde_json::Value| line["level"] == "ERROR";
    assert_eq!(agent.logs().iter().find(is_error), None, "{name}");
    let Spent {
        watches,
        gets,
        patches,
        connections,
    } = case.spent;
    let lists = scene.count(Verb::List);
    let unexpected = if streaming_lists().await { lists } else { 0 };
    let counts = [
        ("watches", watches, scene.watches()),
        ("gets", gets, scene.count(Verb::Get)),
        ("patches", patches, scene.count(Verb::Patch) - 1),
        ("connections", connections, scene.proxy.connections()),
        ("others", 0..=0, unexpected + scene.count(Verb::Other)),
    ];
    for (what, allowed, count) in counts {
        let requests = || {
            let requests = scene.middle.requests();
            let line = |sent: &Request| (sent.verb, sent.status, sent.connection);
            requests.iter().map(line).collect::<Vec<_>>()
        };
        assert!(
            allowed.contains(&count),
            "{name}: {count} {what}, not {allowed:?}: {:?}",
            requests()
        );
    }
}

/// Exactly these numbers.
fn exactly(watches: usize, gets: usize, patches: usize, connections: usize) -> Spent {
    Spent {
        watches: watches..=watches,
        gets: gets..=gets,
        patches: patches..=patches,
        connections: connections..=connections,
    }
}
