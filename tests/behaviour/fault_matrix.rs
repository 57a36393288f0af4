//! Every fault between the agent and the API server that has a name, one row each: the agent recovers unaided, in
//! bounded time, at the cost of a counted number of requests.
//!
//! All rows run against the real API server, which a man in the middle and a fault proxy keep from working. Where the
//! answer is one that a real server cannot be made to give at will, the man in the middle gives it.

mod addresses;
mod answers;
mod connections;
mod credentials;
mod own_server;
mod rotation;

use std::collections::HashMap;
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use testkit::DEADLINE;
use testkit::api::{ApiServer, Verb};
use testkit::cluster::{self, Cluster};
use testkit::kubeconfig::point_at;
use testkit::proxy::FaultProxy;
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::scene::{FOREIGN, Gates, TAINT, own_taints};

/// Others' taints, around the one to be removed.
const OTHERS: [&str; 2] = ["example.com/before:PreferNoSchedule", FOREIGN];
/// On the Node of each row.
const TAINTS: [&str; 3] = [OTHERS[0], TAINT, OTHERS[1]];
/// What a machine with other things to do may add to the bounds in time, which are those of the agent's waits.
const SLACK: Duration = Duration::from_secs(3);

/// The agent's word that the watch broke.
const WATCH_FAILED: &str = "failed to watch the node; trying again";
/// The same for another request.
const REQUEST_FAILED: &str = "a request did not succeed; trying again";

/// Does something to what is between the agent and the server.
type Act = fn(&Scene);

/// A row.
struct Case {
    /// The Node's name, too.
    name: &'static str,
    when: When,
    fault: Act,
    /// What ends the fault once the agent has said this; without it, the fault ends by itself.
    heal: Option<(&'static str, Act)>,
    spent: Spent,
    /// Seconds from the fault's end, or from when the gates have opened, to the removal.
    within: RangeInclusive<u64>,
}

/// When the fault begins.
enum When {
    /// Before the agent does.
    Start,
    /// While it watches, before the gates open.
    Watching,
}

/// The number of requests that reached the server, by verb, and of connections that were begun.
struct Spent {
    watches: RangeInclusive<usize>,
    gets: RangeInclusive<usize>,
    patches: RangeInclusive<usize>,
    connections: RangeInclusive<usize>,
}

/// What a fault is made with. The agent speaks to the proxy, that to the man in the middle, that to the real server.
struct Scene {
    gates: Gates,
    kubeconfig: PathBuf,
    /// Another token than the one of the kubeconfig.
    new_token: String,
    proxy: FaultProxy,
    middle: ApiServer,
}

impl Scene {
    async fn new(cluster: &'static Cluster, name: &'static str) -> Self {
        let gates = Gates::closed().await;
        cluster.create_node(name, &TAINTS).await.unwrap();
        let directory = gates.dir.path();
        let kubeconfig = cluster.agent_kubeconfig(directory, name).await.unwrap();
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

    /// One of the files beside the kubeconfig file.
    fn write(&self, file: &str, content: &str) {
        std::fs::write(self.kubeconfig.with_file_name(file), content).unwrap();
    }

    fn count(&self, verb: Verb) -> usize {
        let requests = self.middle.requests();
        requests.iter().filter(|sent| sent.verb == verb).count()
    }
}

/// Goes through the rows, all at once, and tells of each that went wrong.
async fn survive(cases: Vec<Case>) {
    let Some(cluster) = cluster::shared().await else {
        return;
    };
    let mut rows = JoinSet::new();
    let mut names = HashMap::new();
    for case in cases {
        let name = case.name;
        names.insert(rows.spawn(run(cluster, case)).id(), name);
    }
    let mut wrong = Vec::new();
    while let Some(row) = rows.join_next().await {
        wrong.extend(row.err().map(|error| names[&error.id()]));
    }
    assert!(wrong.is_empty(), "see above: {wrong:?}");
}

async fn run(cluster: &'static Cluster, case: Case) {
    let name = case.name;
    let scene = Scene::new(cluster, name).await;
    if matches!(case.when, When::Start) {
        (case.fault)(&scene);
    }
    let listen = ["--listen", "127.0.0.1:0"];
    let mut agent = scene.gates.agent(name, &scene.kubeconfig, &listen);
    if matches!(case.when, When::Watching) {
        agent.wait_for_message("watching the node").await.unwrap();
        (case.fault)(&scene);
    }
    let mut began = Instant::now();
    scene.gates.write_conflist();
    scene.gates.health.set(200);
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

    // Nothing is left of the fault: the next removal takes one request, and all that went before has been counted.
    let unanswered = "found the taint gone after a removal without an answer";
    let removed = agent.wait_for_log(|line| {
        line["message"] == "removed the taint" || line["message"] == unanswered
    });
    removed.await.unwrap();
    let before = agent.count("removed the taint");
    cluster.set_taints(name, &TAINTS).await.unwrap();
    let again = agent.wait_for_count("removed the taint", before + 1);
    again.await.unwrap();
    assert!(is_gone(&cluster.node(name).await.unwrap()), "{name}");

    // The removal may have followed from a read of the Node, before the next watch began.
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
    let counts = [
        ("watches", watches, scene.count(Verb::Watch)),
        ("gets", gets, scene.count(Verb::Get)),
        ("patches", patches, scene.count(Verb::Patch) - 1),
        ("connections", connections, scene.proxy.connections()),
        (
            "others",
            0..=0,
            scene.count(Verb::List) + scene.count(Verb::Other),
        ),
    ];
    for (what, allowed, count) in counts {
        let requests = || {
            let requests = scene.middle.requests();
            let line = |sent: &testkit::api::Request| (sent.verb, sent.status, sent.connection);
            requests.iter().map(line).collect::<Vec<_>>()
        };
        assert!(
            allowed.contains(&count),
            "{name}: {count} {what}, not {allowed:?}: {:?}",
            requests()
        );
    }
}

/// So many watches, reads, patches and connections, no more and no less.
fn exactly(watches: usize, gets: usize, patches: usize, connections: usize) -> Spent {
    Spent {
        watches: watches..=watches,
        gets: gets..=gets,
        patches: patches..=patches,
        connections: connections..=connections,
    }
}
