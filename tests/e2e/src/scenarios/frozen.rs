use std::time::{Duration, SystemTime};

use anyhow::Result;

use crate::agent::{self, closed_gates, rule};
use crate::by_hand::{Network, configuration, key};
use crate::eventually::eventually_async;
use crate::faults::taint;
use crate::habitat::Habitat;
use crate::node::NAME;
use crate::processes::{freeze, thaw};
use crate::timeline::World;

/// The rule for a node whose own programs stand still.
const NODE: &str = "node";
/// Rules with what stands still meanwhile.
const SERVERS: [(&str, &str); 2] = [("api-server", "kube-apiserver"), ("storage", "etcd")];
/// After so many requests without an answer, what is sent is only a repetition.
const TIMEOUTS: u64 = 2;
/// untaint tries again after at most 7 s. The rest is for the answer.
const SOON: Duration = Duration::from_secs(8);

pub(super) async fn run(habitat: &mut Habitat) -> Result<()> {
    let timeline = habitat.timeline.clone();
    let network = Network::new().await?;
    let names = [NODE].into_iter().chain(SERVERS.map(|(name, _)| name));
    let rules: Vec<_> = names
        .map(|name| network.rule(name, Duration::ZERO))
        .collect();
    habitat.install(&configuration(&rules), &[]).await?;
    let mut node = habitat.node(&[])?;
    node.up().await?;
    agent::ready().await?;
    let gone = |name: &'static str| move |world: &World| world.lacks_taint(NAME, &key(name));

    taint(habitat, NODE).await?;
    closed(NODE, &["conflist", "agent"]).await?;
    let programs = ["kubelet", "containerd"];
    for program in programs {
        freeze(program)?;
    }
    timeline.say("the kubelet and containerd stand still");
    network.configure(&node)?;
    closed(NODE, &["agent"]).await?;
    network.set_healthy(true);
    timeline.wait("the taint is gone", gone(NODE)).await?;
    habitat.expect(
        "the taint goes while the kubelet and containerd stand still",
        true,
    );
    for program in programs {
        thaw(program)?;
    }

    for (name, program) in SERVERS {
        network.set_healthy(false);
        taint(habitat, name).await?;
        closed(name, &["agent"]).await?;
        let before = timeouts().await.unwrap_or_default();
        freeze(program)?;
        timeline.say(&format!("{program} stands still"));
        network.set_healthy(true);
        eventually_async("requests without an answer", async || {
            timeouts().await.filter(|now| now - before >= TIMEOUTS)
        })
        .await?;
        thaw(program)?;
        let thawed = SystemTime::now();
        timeline.say(&format!("{program} goes on"));
        let gone = timeline.wait("the taint is gone", gone(name)).await?;
        let after = gone.duration_since(thawed)?;
        habitat.measured(
            &format!("{program}: from going on to the end of the taint"),
            after,
        );
        let limit = SOON.as_secs();
        habitat.expect(
            &format!("{program}: the taint goes within {limit} s after it goes on"),
            after <= SOON,
        );
    }
    let ready = |world: &World| world.is_ready(NAME);
    let ready = timeline.wait("the Node is Ready", ready);
    habitat
        .comes_true("the Node is Ready after all of that", ready)
        .await?;
    Ok(())
}

/// Waits until these gates of the rule are the only ones that are not open.
async fn closed(name: &str, gates: &[&str]) -> Result<()> {
    let what = format!("{name}: only {gates:?} are not open");
    agent::status(&what, |status| closed_gates(rule(status, name)) == gates).await?;
    Ok(())
}

/// How many requests of untaint had no answer in time.
async fn timeouts() -> Option<u64> {
    let metrics = agent::metrics().await?;
    let requests = metrics
        .lines()
        .filter(|line| line.starts_with("untaint_api_requests_total{"));
    let timeouts = requests.filter(|line| line.contains(r#"code="timeout""#));
    let counts = timeouts.filter_map(|line| line.rsplit(' ').next()?.parse::<u64>().ok());
    Some(counts.sum())
}
