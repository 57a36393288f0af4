//! `untaint wait`: the gates alone, without the API server.

use std::time::Instant;

use tokio::sync::mpsc;
use tokio::time::sleep_until;
use tracing::{error, info};

use super::{Failure, in_time};
use crate::agent::gates::ObservedGates;
use crate::cli::{Exit, WaitArgs};
use crate::config::Configuration;
use crate::gate::observation::Sight;
use crate::gate::set::Surroundings;

pub(super) async fn wait(args: WaitArgs) -> Result<Exit, Failure> {
    let WaitArgs {
        gates,
        timeout: limit,
    } = args;
    let mut rules = Vec::new();
    let work = all_open(gates.configuration()?, &mut rules);
    if in_time(limit, work).await {
        info!("every gate is open");
        return Ok(Exit::Done);
    }
    for gates in &rules {
        for gate in gates.status().iter().filter(|gate| gate.state != "open") {
            error!(
                gate = gate.name,
                state = gate.state,
                reason = gate.message,
                "not in time"
            );
        }
    }
    Ok(Exit::NotReady)
}

/// Returns when every gate of every rule has been open for the rule's `stableFor`.
async fn all_open(configuration: Configuration, rules: &mut Vec<ObservedGates>) {
    let (updates, mut reported) = mpsc::channel(16);
    let surroundings = Surroundings {
        updates,
        sight: Sight::none(),
    };
    let mut open_since = vec![None; configuration.rules.len()];
    for (index, rule) in configuration.rules.iter().enumerate() {
        let mut gates = ObservedGates::new(index, rule, surroundings.clone());
        gates.run(Instant::now(), 0);
        rules.push(gates);
    }
    loop {
        let now = Instant::now();
        let mut done_at = Some(now);
        for ((gates, rule), since) in rules.iter().zip(&configuration.rules).zip(&mut open_since) {
            *since = if gates.all_open() {
                since.or(Some(now))
            } else {
                None
            };
            let stable_at = since.map(|since| since + rule.stable_for);
            done_at = done_at
                .zip(stable_at)
                .map(|(done, stable)| done.max(stable));
        }
        if done_at.is_some_and(|done_at| done_at <= now) {
            return;
        }
        tokio::select! {
            Some(update) = reported.recv() => rules[update.place.rule].take(Instant::now(), update),
            () = sleep_until(done_at.unwrap_or(now).into()), if done_at.is_some() => {}
        }
    }
}
