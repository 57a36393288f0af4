//! `untaint wait`: only gates, without the API server.

use std::time::Instant;

use tokio::sync::mpsc;
use tokio::time::sleep_until;
use tracing::{error, info};

use super::{Failure, deadline_in, finish_by};
use crate::cli::{Exit, WaitArgs};
use crate::config::Configuration;
use crate::gate::State;
use crate::gate::run::RuleGates;
use crate::gate::{GateContext, NodeSnapshot};
use crate::rule::RuleState;

pub(super) async fn wait(args: WaitArgs) -> Result<Exit, Failure> {
    let WaitArgs {
        gates,
        timeout: limit,
    } = args;
    let deadline = deadline_in(limit);
    let mut rules = Vec::new();
    let work = all_open(gates.configuration(deadline).await?, &mut rules);
    if finish_by(deadline, work).await.is_some() {
        info!("every gate is open");
        return Ok(Exit::Done);
    }
    for gates in &rules {
        for gate in gates.status().filter(|gate| gate.state != State::Open) {
            error!(
                gate = gate.name,
                state = gate.state.as_str(),
                reason = gate.message,
                "the gate was not open in time"
            );
        }
    }
    Ok(Exit::NotReady)
}

/// Returns when every gate of every rule has been open for the rule's `stableFor`.
async fn all_open(configuration: Configuration, rules: &mut Vec<RuleGates>) {
    let (updates, mut reported) = mpsc::channel(16);
    let context = GateContext::without_api_server(updates);
    let mut states = Vec::new();
    for rule in configuration.rules {
        let mut gates = RuleGates::new(&rule, context.clone());
        gates.run(Instant::now(), 0);
        gates.observe_node(Instant::now(), &NodeSnapshot::default());
        let mut state = RuleState::new(rule, None);
        state.observe(Instant::now(), gates.together());
        rules.push(gates);
        states.push(state);
    }
    loop {
        let stable_at: Option<Vec<_>> = states.iter().map(RuleState::stable_at).collect();
        let done_at = stable_at.and_then(|times| times.into_iter().max());
        tokio::select! {
            // First apply what is known.
            biased;
            Some(update) = reported.recv() => {
                let now = Instant::now();
                for (gates, state) in rules.iter_mut().zip(&mut states) {
                    if gates.apply(now, &update) {
                        state.observe(now, gates.together());
                    }
                }
            }
            () = sleep_until(done_at.unwrap_or_else(Instant::now).into()), if done_at.is_some() => return,
        }
    }
}
