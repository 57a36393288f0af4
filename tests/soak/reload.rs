//! The configuration file changes all the time, together with the Node, the gates and the connection.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};
use tempfile::TempDir;
use testkit::agent::Agent;
use testkit::cluster::{self, Cluster};
use testkit::config_map::{ConfigMap, HEAD};
use testkit::health::HealthEndpoint;
use testkit::kubeconfig::point_at;
use testkit::proxy::{Direction, FaultProxy, Mode};
use testkit::{DEADLINE, node, taints};
use tokio::time::timeout;

use crate::{agent, amount, summarize};

const NODE: &str = "reload-stress";
/// The number of rules to choose from. Each has a taint.
const RULES: usize = 6;
/// A rule removes its taint five times at full speed. After this smaller number, the test renames the rule, which makes
/// it another rule. One more removal is possible if the agent sees the swap late.
const UNDER_ONE_NAME: usize = 3;
const RELOADED: &str = "reloaded the configuration";
const SAW: &str = "saw the Node";
const BROKE_OFF: &str = "canceled a change that no rule wants any more";

/// A rule that may be in the configuration.
#[derive(Clone, Copy, Default)]
struct Rule {
    version: usize,
    /// The number of removals under this name, or more.
    removals: usize,
}

#[derive(Default)]
struct Done {
    good: usize,
    bad: usize,
    faults: usize,
    removals: usize,
    /// Taints that stayed because their rule was not configured.
    kept: usize,
    broken_off: usize,
}

struct Stress {
    cluster: &'static Cluster,
    agent: Agent,
    proxy: FaultProxy,
    health: HealthEndpoint,
    map: ConfigMap,
    random: fastrand::Rng,
    rules: [Rule; RULES],
    /// The rules in the last good file.
    configured: BTreeSet<usize>,
    done: Done,
}

#[tokio::test]
async fn no_swap_of_the_configuration_loses_a_rule_or_leaves_one_behind_that_still_removes() {
    let Some(cluster) = cluster::shared().await else {
        return;
    };
    let dir = TempDir::new().unwrap();
    let seed = fastrand::u64(..);
    summarize(&format!("seed: {seed}"));
    let mut stress = Stress::start(cluster, dir.path(), seed).await;
    for _ in 0..amount("SOAK_SWAPS", 24) {
        stress.round().await;
    }
    let done = stress.done;
    summarize(&format!(
        "swaps: {} good, {} bad, among {} faults; removals: {}, kept as their rule was not configured: {}, \
         removed without a rule: 0, rules lost: 0, patches broken off: {}",
        done.good, done.bad, done.faults, done.removals, done.kept, done.broken_off
    ));
    assert!(done.bad > 0 && done.faults > 0 && done.kept > 0);
}

impl Stress {
    async fn start(cluster: &'static Cluster, dir: &Path, seed: u64) -> Self {
        cluster.create_node(NODE, &[]).await.unwrap();
        let kubeconfig = cluster.agent_kubeconfig(dir, NODE).await.unwrap();
        let proxy = FaultProxy::start(cluster.address()).await.unwrap();
        point_at(&kubeconfig, proxy.address()).unwrap();
        let health = HealthEndpoint::start(503).await.unwrap();
        let rules = [Rule::default(); RULES];
        let configured = BTreeSet::from([0]);
        let map = ConfigMap::mount(dir, &text(&rules, &configured, health.port()));
        let agent = agent(
            NODE,
            dir,
            &["--log-level", "debug", "--listen", "127.0.0.1:0"],
        );
        agent.wait_for_message("listening").await.unwrap();
        Self {
            cluster,
            agent,
            proxy,
            health,
            map,
            random: fastrand::Rng::with_seed(seed),
            rules,
            configured,
            done: Done::default(),
        }
    }

    /// Swaps the file during removals, and checks the result.
    async fn round(&mut self) {
        // When the file changes, the removals of this round have started, or they wait for a gate that opens at this
        // moment.
        self.health.set(if self.random.bool() { 200 } else { 503 });
        let mode = self.fault();
        let seen = self.agent.count(SAW);
        self.put_on(0..RULES).await;
        if let Mode::Delay(_) = mode {
            // Then a patch is on its way, if the gate is open.
            self.agent.wait_for_count(SAW, seen + 1).await.unwrap();
        }
        let broken_off = self.agent.count(BROKE_OFF);
        for rule in &self.configured {
            self.rules[*rule].removals += 1;
        }
        if self.random.u8(..4) == 0 {
            self.swap_to_bad().await;
        } else {
            self.swap_to_good().await;
        }
        self.proxy.set(Mode::Pass);
        self.health.set(200);
        let broken_off = self.agent.count(BROKE_OFF) - broken_off;
        self.done.broken_off += broken_off;
        if broken_off > 0 {
            // The server may have received that PATCH and not finished it. It has finished it when another PATCH of the
            // agent has an answer.
            self.put_on(self.configured.clone()).await;
            self.configured_are_gone().await;
        }
        self.only_configured_ones_are_removed().await;
        self.the_active_rules_are_the_configured_ones().await;
    }

    fn fault(&mut self) -> Mode {
        let mode = match self.random.u8(..20) {
            0 => Mode::Refuse,
            1 => Mode::BlackHole,
            2 => Mode::Cut(Direction::ToClient, self.random.usize(..2000)),
            3 => Mode::Cut(Direction::ToServer, self.random.usize(..400)),
            4..12 => Mode::Delay(Duration::from_millis(self.random.u64(10..60))),
            _ => return Mode::Pass,
        };
        self.done.faults += 1;
        self.proxy.set(mode);
        if mode == Mode::Refuse {
            self.proxy.reset_connections();
        }
        mode
    }

    async fn swap_to_bad(&mut self) {
        let failed = self.configuration().await["failedReloads"].as_u64();
        self.done.bad += 1;
        let version = self.done.bad;
        let good = text(&self.rules, &(0..RULES).collect(), self.health.port());
        let text = match version % 4 {
            0 => format!("{HEAD}{good}more: {version}\n"),
            1 => format!("{HEAD}{good}- [ # {version}\n"),
            2 => format!("{HEAD}{good}{good}# {version}\n"),
            _ => format!("# {version}\n"),
        };
        self.map.swap_files(Some(&text));
        // The number of lines about bad files is limited, so the test cannot wait for one.
        let noticed =
            async { while self.configuration().await["failedReloads"].as_u64() == failed {} };
        timeout(DEADLINE, noticed).await.unwrap();
    }

    async fn swap_to_good(&mut self) {
        self.done.good += 1;
        let mut configured: BTreeSet<_> = (0..RULES).filter(|_| self.random.bool()).collect();
        // Without one, there would be nothing to wait for.
        configured.insert(self.random.usize(..RULES));
        for rule in &mut self.rules {
            if rule.removals >= UNDER_ONE_NAME {
                rule.version += 1;
                rule.removals = 0;
            }
        }
        self.configured = configured;
        let text = text(&self.rules, &self.configured, self.health.port());
        let swaps = self.done.good;
        self.map.swap(&format!("{text}# {swaps}\n"));
        self.agent.wait_for_count(RELOADED, swaps).await.unwrap();
        // The agent logs that before it cancels what no rule wants any more, and has this status after that.
        let reloads = Some(swaps as u64);
        let canceled = async { while self.configuration().await["reloads"].as_u64() != reloads {} };
        timeout(DEADLINE, canceled).await.unwrap();
    }

    /// Counted from the acknowledgement of the swap.
    async fn only_configured_ones_are_removed(&mut self) {
        let before = self.present().await;
        self.put_on(self.configured.clone()).await;
        let after = self.configured_are_gone().await;
        for rule in (0..RULES).filter(|rule| !self.configured.contains(rule)) {
            let is_there = [&before, &after].map(|present| present.contains(&rule));
            assert_eq!(
                is_there[0],
                is_there[1],
                "rule {rule}: {:#?}",
                self.agent.logs()
            );
            self.done.kept += usize::from(is_there[1]);
        }
        self.done.removals += self.configured.len();
    }

    async fn configured_are_gone(&mut self) -> BTreeSet<usize> {
        for rule in &self.configured {
            self.rules[*rule].removals += 1;
        }
        let are_gone = |node: &Value| present(node).is_disjoint(&self.configured);
        let node = self.cluster.wait_for_node(NODE, are_gone).await;
        present(&node.unwrap_or_else(|error| panic!("{error:#}: {:#?}", self.agent.logs())))
    }

    async fn the_active_rules_are_the_configured_ones(&self) {
        let status = self.agent.status().await.unwrap();
        let active = status["rules"].as_array().unwrap().iter();
        let active: Vec<_> = active.map(|rule| rule["name"].as_str().unwrap()).collect();
        let configured = self.configured.iter();
        let configured: Vec<_> = configured.map(|rule| name(&self.rules, *rule)).collect();
        assert_eq!(active, configured);
    }

    async fn configuration(&self) -> Value {
        self.agent.status().await.unwrap()["configuration"].clone()
    }

    async fn present(&self) -> BTreeSet<usize> {
        present(&self.cluster.node(NODE).await.unwrap())
    }

    /// Adds the taints of these rules to the Node, while the agent may change it.
    async fn put_on(&self, rules: impl IntoIterator<Item = usize>) {
        let wanted: BTreeSet<_> = rules.into_iter().collect();
        loop {
            let now = self.cluster.node(NODE).await.unwrap();
            let all: Vec<_> = present(&now)
                .union(&wanted)
                .map(|rule| taint(*rule))
                .collect();
            let all: Vec<_> = all.iter().map(String::as_str).collect();
            let patch = json!({
                "metadata": {"resourceVersion": now["metadata"]["resourceVersion"]},
                "spec": node(NODE, &all)["spec"],
            });
            let Err(error) = self.cluster.patch_node(NODE, &patch).await else {
                return;
            };
            let is_conflict = format!("{error:#}").contains("the object has been modified");
            assert!(is_conflict, "{error:#}");
        }
    }
}

fn taint(rule: usize) -> String {
    format!("example.com/rule-{rule}:NoExecute")
}

fn name(rules: &[Rule; RULES], rule: usize) -> String {
    format!("rule-{rule}-{}", rules[rule].version)
}

/// The rules whose taints a Node has.
fn present(node: &Value) -> BTreeSet<usize> {
    let taints = taints(node);
    (0..RULES)
        .filter(|rule| taints.contains(&taint(*rule)))
        .collect()
}

fn text(rules: &[Rule; RULES], configured: &BTreeSet<usize>, port: u16) -> String {
    configured.iter().fold(String::new(), |mut text, &rule| {
        let name = name(rules, rule);
        let gate = format!("{{name: agent, httpGet: {{port: {port}}}, periodSeconds: 0.02}}");
        let taint = format!("{{key: example.com/rule-{rule}}}");
        writeln!(text, "- {{name: {name}, taint: {taint}, gates: [{gate}]}}").unwrap();
        text
    })
}
