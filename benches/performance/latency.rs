//! The latency of removals, in rounds that measure each latency once.

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use http::Version;
use jiff::Timestamp;
use tempfile::TempDir;
use testkit::cluster::Cluster;
use testkit::health::HealthEndpoint;
use tokio::time::sleep;

use crate::TAINT;
use crate::connection::Connection;
use crate::node_watch::NodeWatch;
use crate::samples::Samples;
use crate::subject::{Gate, Subject};
use crate::table::{Row, Target};

/// The default of `periodSeconds`.
const PERIOD: Duration = Duration::from_millis(250);
/// The time in which the file watch of a gate is set up after the first evaluation.
const REST: Duration = Duration::from_millis(200);

/// The results.
#[derive(Default)]
pub(crate) struct Latencies {
    http1_answered: Samples,
    http1_seen: Samples,
    http2_answered: Samples,
    http2_seen: Samples,
    conflist: Samples,
    http_gate: Samples,
    first_request: Samples,
    /// The largest number of requests of an agent.
    requests: usize,
}

impl Latencies {
    pub(crate) async fn measure(cluster: &Cluster, program: &str, rounds: u32) -> Result<Self> {
        let mut bench = Bench::new(cluster, program).await?;
        let mut latencies = Self::default();
        for round in 0..rounds {
            bench.round(round, &mut latencies).await?;
        }
        Ok(latencies)
    }

    async fn take_requests(&mut self, agent: &Subject<'_>) -> Result<()> {
        let requests = agent.requests().await?;
        let first = requests.first().context("a request")?;
        let took = first
            .received
            .parse::<Timestamp>()?
            .duration_since(agent.started);
        self.first_request.push(took.try_into()?);
        self.requests = self.requests.max(requests.len());
        Ok(())
    }

    pub(crate) fn rows(&self) -> Vec<Row> {
        let base = self.http1_answered.median();
        let row = |measure, samples: &Samples| {
            Row::new(measure, samples.to_string()).ratio(samples.median() / base)
        };
        let conflist = self.conflist.median();
        vec![
            row(
                "base: one PATCH on a warm HTTP/1.1 connection, sent → answered",
                &self.http1_answered,
            ),
            row("the same, sent → seen in a watch", &self.http1_seen),
            row(
                "one PATCH on a warm HTTP/2 connection, sent → answered",
                &self.http2_answered,
            ),
            row("the same, sent → seen in a watch", &self.http2_seen),
            row("conflist appears → taint gone", &self.conflist).target(Target::at_most(
                conflist / base,
                1.2,
                "× base",
            )),
            row(
                "HTTP gate at its default period: endpoint turns 200 → taint gone",
                &self.http_gate,
            )
            .target(Target::at_most(self.http_gate.median(), 200.0, "ms")),
            row(
                "agent's start → its watch reaches the server",
                &self.first_request,
            ),
            Row::new(
                "requests from the agent's start to the taint gone",
                self.requests.to_string(),
            )
            .target(Target::new(self.requests <= 2, "≤ 2".into())),
        ]
    }
}

struct Bench<'a> {
    cluster: &'a Cluster,
    program: &'a str,
    watch: NodeWatch,
    http1: Connection,
    http2: Connection,
    endpoint: HealthEndpoint,
}

impl<'a> Bench<'a> {
    async fn new(cluster: &'a Cluster, program: &'a str) -> Result<Self> {
        let watch = NodeWatch::start(cluster).await?;
        let directory = TempDir::new()?;
        cluster.create_node("base", &[]).await?;
        cluster.agent_kubeconfig(directory.path(), "base").await?;
        let open = |version| Connection::open(cluster.address(), directory.path(), version);
        Ok(Self {
            cluster,
            program,
            watch,
            http1: open(Version::HTTP_11).await?,
            http2: open(Version::HTTP_2).await?,
            endpoint: HealthEndpoint::start(503).await?,
        })
    }

    async fn round(&mut self, round: u32, latencies: &mut Latencies) -> Result<()> {
        let (answered, seen) = self.bare_patch(Version::HTTP_11, round).await?;
        latencies.http1_answered.push(answered);
        latencies.http1_seen.push(seen);

        let agent = self
            .agent(format!("conflist-{round}"), Gate::Conflist)
            .await?;
        let took = self.until_untainted(&agent, round, || agent.install_conflist());
        latencies.conflist.push(took.await?);
        latencies.take_requests(&agent).await?;

        let (answered, seen) = self.bare_patch(Version::HTTP_2, round).await?;
        latencies.http2_answered.push(answered);
        latencies.http2_seen.push(seen);

        self.endpoint.set(503);
        let gate = Gate::Http(self.endpoint.port());
        let agent = self.agent(format!("http-{round}"), gate).await?;
        let turn = || {
            self.endpoint.set(200);
            Ok(())
        };
        latencies
            .http_gate
            .push(self.until_untainted(&agent, round, turn).await?);
        latencies.take_requests(&agent).await
    }

    async fn agent(&self, node: String, gate: Gate) -> Result<Subject<'a>> {
        Subject::start(self.cluster, self.program, node, &[gate], "off").await
    }

    async fn until_untainted(
        &self,
        agent: &Subject<'_>,
        round: u32,
        open: impl FnOnce() -> Result<()>,
    ) -> Result<Duration> {
        rest(round).await;
        let opened = Instant::now();
        open()?;
        Ok(self.watch.untainted(&agent.node).await? - opened)
    }

    /// The time until the answer, and the time until the watch showed the change.
    async fn bare_patch(&mut self, version: Version, round: u32) -> Result<(Duration, Duration)> {
        let name = format!("{version:?}-{round}")
            .to_lowercase()
            .replace('/', "-");
        let node = self.cluster.create_node(&name, &[TAINT]).await?;
        rest(round).await;
        let connection = match version {
            Version::HTTP_2 => &mut self.http2,
            _ => &mut self.http1,
        };
        let (sent, answered) = connection.untaint(&node).await?;
        Ok((answered, self.watch.untainted(&name).await? - sent))
    }
}

/// Waits until the setup has finished, and then a time that spreads the rounds over the period of a gate. The PATCH of
/// the base waits, too, because a server that was busy a moment ago answers sooner.
async fn rest(round: u32) {
    const GOLDEN: f64 = 0.618_033_988_75;
    sleep(REST + PERIOD.mul_f64((f64::from(round) * GOLDEN).fract())).await;
}
