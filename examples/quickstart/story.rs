//! The changes, one after the other. Each waits until the agent has seen the change before it, and then a time for the
//! reader.

use std::time::Duration;

use anyhow::{Result, bail};
use tokio::sync::{Notify, watch};
use tokio::time::{sleep, timeout};
use untaint::gate::State;
use untaint::gate::run::GateStatus;
use untaint::status::{RuleStatus, Status};

use crate::rules::{AGENT, CONFLIST, DRIVER, GPU, GPUS, NETWORK, STORAGE};
use crate::scene::Scene;
use crate::verdict::Gate;

/// The time for the reader.
const PAUSE: Duration = Duration::from_millis(650);
/// The limit for the agent, which is much longer than it needs on a busy machine.
const LIMIT: Duration = Duration::from_secs(10);

/// Runs from the registration of the Node until the agent has nothing to do. `start` starts the agent.
pub(crate) async fn play(
    scene: &Scene,
    status: watch::Receiver<Option<Status>>,
    start: &Notify,
) -> Result<()> {
    let mut agent = Agent(status);
    scene.register_node()?;
    sleep(PAUSE).await;
    scene.start_agent(start)?;
    let all = [CONFLIST, AGENT, DRIVER, GPUS];
    agent
        .comes_to(|status| all.iter().all(|gate| is(status, *gate, State::Closed)))
        .await?;

    // None of these changes opens the gate.
    agent
        .finds_another_reason(CONFLIST, || scene.make_directory())
        .await?;
    agent
        .finds_another_reason(CONFLIST, || scene.write_flannel())
        .await?;
    agent
        .finds_another_reason(DRIVER, || scene.create_csi_node())
        .await?;
    agent
        .finds_another_reason(CONFLIST, || scene.write_half_of_cilium())
        .await?;

    scene.register_driver()?;
    agent.comes_to(|status| is_absent(status, STORAGE)).await?;
    scene.write_cilium()?;
    agent
        .comes_to(|status| is(status, CONFLIST, State::Open))
        .await?;
    scene.answer_health(200)?;
    agent.comes_to(|status| is_absent(status, NETWORK)).await?;

    // The agent checks all gates again for a taint that comes back.
    scene.answer_health(503)?;
    sleep(PAUSE).await;
    scene.taint_again()?;
    agent
        .comes_to(|status| is(status, CONFLIST, State::Open) && is(status, AGENT, State::Closed))
        .await?;
    scene.answer_health(200)?;
    agent
        .comes_to(|status| {
            let overdue = rule(status, GPU).is_some_and(|rule| rule.overdue);
            overdue && is_absent(status, NETWORK)
        })
        .await
}

/// The agent's status.
struct Agent(watch::Receiver<Option<Status>>);

impl Agent {
    /// Waits until `wanted` is true.
    async fn comes_to(&mut self, mut wanted: impl FnMut(&Status) -> bool) -> Result<()> {
        let comes = self
            .0
            .wait_for(|status| status.as_ref().is_some_and(&mut wanted));
        let came = timeout(LIMIT, comes).await.map(|came| came.map(drop));
        if came.is_err() {
            bail!("the agent made no progress in {} s", LIMIT.as_secs());
        }
        sleep(PAUSE).await;
        Ok(())
    }

    /// Makes a change after which a gate is still closed, but for another reason.
    async fn finds_another_reason(
        &mut self,
        gate: Gate,
        deed: impl FnOnce() -> Result<()>,
    ) -> Result<()> {
        let reason = |status: &Status| find(status, gate).map(|gate| gate.message.clone());
        let before = self.0.borrow().as_ref().and_then(reason);
        deed()?;
        self.comes_to(|status| is(status, gate, State::Closed) && reason(status) != before)
            .await
    }
}

fn rule<'a>(status: &'a Status, name: &str) -> Option<&'a RuleStatus> {
    status.rules.iter().find(|rule| rule.name == name)
}

fn is_absent(status: &Status, name: &str) -> bool {
    rule(status, name).is_some_and(|rule| rule.decision == "absent")
}

fn find(status: &Status, gate: Gate) -> Option<&GateStatus> {
    let rule = rule(status, gate.rule)?;
    rule.gates.iter().find(|found| found.name == gate.name)
}

fn is(status: &Status, gate: Gate, state: State) -> bool {
    find(status, gate).is_some_and(|gate| gate.state == state)
}
