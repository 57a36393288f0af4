use std::time::{Duration, SystemTime};

use anyhow::{Context as _, Result};

use crate::agent;
use crate::by_hand::{Network, configuration, key};
use crate::eventually::eventually_async;
use crate::faults::{Fault, at_each_stage, expect_no_restart, rules, taint};
use crate::habitat::Habitat;
use crate::node::NAME;
use crate::timeline::World;

/// The rule for the long outage: it needs the API server for a gate too.
const LONG: &str = "long";
const READY: &str = "  - name: node\n    nodeCondition: {type: Ready}\n";
/// After so many failed tries, untaint waits for up to 16 s before the next one.
const TRIES: u64 = 5;
/// While nothing but the API server is missing, untaint tries it every 5 s at least. The rest is for its answers.
const AT_ONCE: Duration = Duration::from_secs(6);

pub(super) async fn run(habitat: &mut Habitat) -> Result<()> {
    let network = Network::new().await?;
    let mut rules = rules(&[Fault::ApiServer], &network);
    rules.push(network.rule(LONG, Duration::ZERO) + READY);
    habitat.install(&configuration(&rules), &[]).await?;
    let mut node = habitat.node(&[])?;
    node.up().await?;
    agent::ready().await?;
    at_each_stage(Fault::ApiServer, habitat, &node, &network).await?;

    let timeline = habitat.timeline.clone();
    network.set_healthy(false);
    expect_no_restart(habitat);
    // Its tries are no longer far apart because of earlier failures.
    node.restart("untaint").await?;
    agent::ready().await?;
    taint(habitat, LONG).await?;
    timeline
        .wait("the Node is Ready", |world| world.is_ready(NAME))
        .await?;
    agent::status("only the agent of the network is missing", |status| {
        agent::closed_gates(agent::rule(status, LONG)) == ["agent"]
    })
    .await?;
    habitat.cluster.stop_api_server();
    timeline.say("the API server is stopped");
    let before = failures().await.unwrap_or_default();
    eventually_async("the tries are far apart", async || {
        failures().await.filter(|now| now - before >= TRIES)
    })
    .await?;
    network.set_healthy(true);
    timeline.say("the local gates are open");
    agent::status("the rule needs nothing but the API server", |status| {
        agent::closed_gates(agent::rule(status, LONG)) == ["node"]
    })
    .await?;
    habitat.expect(
        "in an outage, a gate that needs the API server is not open",
        true,
    );
    let untainted = |world: &World| world.lacks_taint(NAME, &key(LONG));
    let start = SystemTime::now();
    habitat.cluster.start_api_server().await?;
    timeline.say("the API server is ready");
    let ready = SystemTime::now();
    timeline.wait("the taint is gone", untainted).await?;
    let gone = timeline.when_after(start, untainted).context("a time")?;
    habitat.measured(
        "from the start of the API server to its readiness",
        ready.duration_since(start)?,
    );
    // It answers before all of it is ready.
    habitat.measured(
        "from the start of the API server to the end of the taint",
        gone.duration_since(start)?,
    );
    habitat.expect(
        &format!(
            "the taint goes within {} s after the API server is ready",
            AT_ONCE.as_secs()
        ),
        gone <= ready + AT_ONCE,
    );
    Ok(())
}

/// How often untaint has failed to start its watch.
async fn failures() -> Option<u64> {
    let metrics = agent::metrics().await?;
    let counter = r#"untaint_api_requests_total{verb="watch",code="error"} "#;
    let count = metrics
        .lines()
        .find_map(|line| line.strip_prefix(counter))?;
    count.parse().ok()
}
