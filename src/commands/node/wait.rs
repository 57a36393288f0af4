//! `untaint wait`: only gates, without the API server.

use std::time::Instant;

use tokio::sync::mpsc;
use tokio::time::sleep_until;
use tracing::info;

use super::{Failure, deadline_in, finish_by, late};
use crate::boot::Moment;
use crate::cli::{Exit, WaitArgs};
use crate::config::{self, Configuration};
use crate::gate::report::Update;
use crate::gate::run::RuleGates;
use crate::gate::{GateContext, NodeSnapshot};
use crate::rule::{BEAT, Decision, Pause, RuleState};

pub(super) async fn wait(args: WaitArgs) -> Result<Exit, Failure> {
    let WaitArgs {
        gates,
        timeout: limit,
    } = args;
    let deadline = deadline_in(limit);
    let files = config::names(&gates.config);
    let node_name = gates.node_name.clone();
    let configuration = gates.configuration(deadline).await?;
    let unanswered = configuration.gates_of_api_server();
    if !unanswered.is_empty() {
        return Err(Failure::Usage(format!(
            "{files}: wait does not use the API server, and only the API server can open these gates: {unanswered}. Use \
             untaint run --once; with --dry-run, it writes nothing"
        )));
    }
    let mut rules = Vec::new();
    let work = all_open(configuration, node_name, &mut rules);
    if finish_by(deadline, work).await.is_some() {
        info!("every gate is open");
        return Ok(Exit::Done);
    }
    let now = Instant::now();
    for (gates, state) in rules.iter().filter(|(_, state)| !state.is_stable(now)) {
        let (decision, reason) = match state.stable_at() {
            Some(until) => (Decision::Stabilizing { until }, late::NOT_STABLE),
            None => (Decision::Waiting, Decision::Waiting.meaning()),
        };
        let rule = &state.rule().name;
        late::log_rule(rule, decision.as_str(), reason, gates.status());
    }
    Ok(Exit::NotReady)
}

/// Returns when every gate of every rule has been open for the rule's `stableFor`.
async fn all_open(
    configuration: Configuration,
    node_name: Option<String>,
    rules: &mut Vec<(RuleGates, RuleState)>,
) {
    let (updates, mut reported) = mpsc::channel(16);
    let context = GateContext::without_api_server(updates, node_name);
    for rule in configuration.rules {
        let mut gates = RuleGates::new(&rule, context.clone());
        let mut state = RuleState::new(rule, None);
        run(Instant::now(), &mut gates, &mut state);
        rules.push((gates, state));
    }
    let mut last = Moment::now();
    loop {
        // First apply what is known.
        while let Ok(update) = reported.try_recv() {
            apply(&update, rules);
        }
        let moment = Moment::now();
        let now = moment.awake;
        if let Some(pause) = Pause::between(last, moment) {
            for (gates, state) in rules.iter_mut() {
                state.paused(now, pause);
                run(now, gates, state);
            }
        }
        last = moment;
        let stable_at = rules.iter().map(|(_, state)| state.stable_at());
        let stable_at: Option<Vec<_>> = stable_at.collect();
        let done_at = stable_at.and_then(|times| times.into_iter().max());
        if done_at.is_some_and(|at| at <= now) {
            return;
        }
        let beat_at = now + BEAT;
        tokio::select! {
            biased;
            Some(update) = reported.recv() => apply(&update, rules),
            () = sleep_until(done_at.map_or(beat_at, |at| at.min(beat_at)).into()) => {}
        }
    }
}

fn apply(update: &Update, rules: &mut [(RuleGates, RuleState)]) {
    let now = Instant::now();
    for (gates, state) in rules {
        if gates.apply(now, update) {
            run(now, gates, state);
        }
    }
}

/// Nothing is known of the Node.
fn run(now: Instant, gates: &mut RuleGates, state: &mut RuleState) {
    gates.run(now, state.round(), &NodeSnapshot::default());
    state.observe(now, gates.state());
}
