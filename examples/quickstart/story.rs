//! What happens, one thing after the other. Each waits for the agent to have taken the one before in, and then for the
//! reader.

use std::time::Duration;

use anyhow::{Result, bail};
use tokio::sync::{Notify, watch};
use tokio::time::{sleep, timeout};
use untaint::status::{GateStatus, RuleStatus, Status};

use crate::scene::{AGENT, CONFLIST, Scene};

/// For the reader.
const PAUSE: Duration = Duration::from_millis(650);
/// For the agent: far longer than it needs on a busy machine.
const LIMIT: Duration = Duration::from_secs(10);

const CILIUM: &str = include_str!("../../tests/fixtures/cni/cilium/05-cilium.conflist");
const FLANNEL: &str = include_str!("../../tests/fixtures/cni/flannel/10-flannel.conflist");

/// From the Node's registration to the second removal. `start` starts the agent.
pub(crate) async fn play(
    scene: &Scene,
    status: watch::Receiver<Option<Status>>,
    start: &Notify,
) -> Result<()> {
    let mut agent = Agent(status);
    scene.register_node()?;
    sleep(PAUSE).await;
    scene.start_agent(start)?;
    let both_closed = |rule: &RuleStatus| is(rule, CONFLIST, "closed") && is(rule, AGENT, "closed");
    agent.comes_to(both_closed).await?;

    agent.stays_closed(|| scene.make_directory()).await?;
    agent
        .stays_closed(|| scene.write_by_rename("10-flannel.conflist", FLANNEL))
        .await?;
    agent
        .stays_closed(|| scene.write_half("05-cilium.conflist", CILIUM))
        .await?;
    scene.write_by_rename("05-cilium.conflist", CILIUM)?;
    agent.comes_to(|rule| is(rule, CONFLIST, "open")).await?;
    scene.answer_health(200)?;
    agent.comes_to(|rule| rule.decision == "absent").await?;

    scene.answer_health(503)?;
    sleep(PAUSE).await;
    scene.taint_again()?;
    let one_open = |rule: &RuleStatus| is(rule, CONFLIST, "open") && is(rule, AGENT, "closed");
    agent.comes_to(one_open).await?;
    scene.answer_health(200)?;
    agent.comes_to(|rule| rule.decision == "absent").await
}

/// What the agent says of itself.
struct Agent(watch::Receiver<Option<Status>>);

impl Agent {
    /// Waits until the rule is as `wanted`.
    async fn comes_to(&mut self, mut wanted: impl FnMut(&RuleStatus) -> bool) -> Result<()> {
        let comes = self
            .0
            .wait_for(|status| rule(status.as_ref()).is_some_and(&mut wanted));
        let came = timeout(LIMIT, comes).await.map(|came| came.map(drop));
        if came.is_err() {
            bail!("the agent came no further in {} s", LIMIT.as_secs());
        }
        sleep(PAUSE).await;
        Ok(())
    }

    /// Does something after which the CNI directory is still not good enough, but for another reason.
    async fn stays_closed(&mut self, deed: impl FnOnce() -> Result<()>) -> Result<()> {
        let reason = |rule: &RuleStatus| gate(rule, CONFLIST).map(|gate| gate.message.clone());
        let before = rule(self.0.borrow().as_ref()).and_then(reason);
        deed()?;
        self.comes_to(|rule| is(rule, CONFLIST, "closed") && reason(rule) != before)
            .await
    }
}

fn rule(status: Option<&Status>) -> Option<&RuleStatus> {
    status?.rules.first()
}

fn gate<'a>(rule: &'a RuleStatus, name: &str) -> Option<&'a GateStatus> {
    rule.gates.iter().find(|gate| gate.name == name)
}

fn is(rule: &RuleStatus, name: &str, state: &str) -> bool {
    gate(rule, name).is_some_and(|gate| gate.state == state)
}
