//! Evaluates the gates of a rule: one task a probe, only while the rule has a taint to remove.

use std::path::Path;

use futures_util::future::join_all;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::{MissedTickBehavior, interval, sleep, timeout};

use super::cni_config::CniConfigGate;
use super::file::FileGate;
use super::fs_watch::FsWatch;
use super::threshold::Threshold;
use super::{Outcome, exec, grpc, http_get, tcp_socket};
use crate::config::{Check, Exec, Gate, Grpc, HttpGet, Probe, TcpSocket};

/// A probe's state after an evaluation that changed it or its message.
#[derive(Debug)]
pub struct Update {
    /// Index of the rule.
    pub rule: usize,
    /// The round it belongs to; those of earlier rounds may still arrive.
    pub round: u64,
    /// Index of the gate in the rule.
    pub gate: usize,
    /// Index of the probe in the gate; 0 unless the gate is a group.
    pub probe: usize,
    /// The new state.
    pub outcome: Outcome,
}

/// The gates of one rule and what they said last.
pub struct Gates {
    rule: usize,
    specs: Vec<Gate>,
    outcomes: Vec<Vec<Outcome>>,
    /// The round under way; `None` while the gates rest.
    round: Option<u64>,
    tasks: JoinSet<()>,
    updates: mpsc::Sender<Update>,
}

impl Gates {
    /// The gates of rule `rule`, at rest. Changes are sent to `updates`.
    #[must_use]
    pub fn new(rule: usize, gates: Vec<Gate>, updates: mpsc::Sender<Update>) -> Self {
        Self {
            rule,
            outcomes: unevaluated(&gates),
            specs: gates,
            round: None,
            tasks: JoinSet::new(),
            updates,
        }
    }

    /// Evaluates the gates from now on. Starts afresh unless `round` is under way already.
    pub fn run(&mut self, round: u64) {
        if self.round == Some(round) {
            return;
        }
        self.rest();
        self.round = Some(round);
        for (gate, probes) in self.specs.iter().map(probes).enumerate() {
            for (probe, spec) in probes.iter().enumerate() {
                let place = Place {
                    rule: self.rule,
                    round,
                    gate,
                    probe,
                };
                self.tasks
                    .spawn(evaluate(spec.clone(), place, self.updates.clone()));
            }
        }
    }

    /// Ends every evaluation, with its connections, processes and file watches, and forgets what it found.
    pub fn rest(&mut self) {
        if self.round.take().is_some() {
            self.tasks = JoinSet::new();
            self.outcomes = unevaluated(&self.specs);
        }
    }

    /// Takes in an update, unless it is of an earlier round.
    pub fn take(&mut self, update: Update) {
        if self.round == Some(update.round) {
            self.outcomes[update.gate][update.probe] = update.outcome;
        }
    }

    /// Each gate's name and state.
    pub fn states(&self) -> impl Iterator<Item = (&str, Outcome)> {
        self.specs
            .iter()
            .zip(&self.outcomes)
            .map(|(gate, outcomes)| (gate.name(), state(gate, outcomes)))
    }

    /// Whether every gate is open.
    #[must_use]
    pub fn all_open(&self) -> bool {
        self.outcomes
            .iter()
            .all(|outcomes| outcomes.iter().any(Outcome::is_open))
    }
}

fn unevaluated(gates: &[Gate]) -> Vec<Vec<Outcome>> {
    let outcomes = |gate| vec![Outcome::unevaluated(); probes(gate).len()];
    gates.iter().map(outcomes).collect()
}

/// Evaluates every probe of `gates` once, delays and thresholds aside. Gives each gate's name and state.
pub async fn once(gates: &[Gate]) -> Vec<(&str, Outcome)> {
    let evaluations = gates.iter().map(|gate| async move {
        let probes = probes(gate).iter();
        let outcomes = join_all(
            probes.map(|probe| async move { bounded(&Checker::new(&probe.check), probe).await }),
        );
        (gate.name(), state(gate, &outcomes.await))
    });
    join_all(evaluations).await
}

fn probes(gate: &Gate) -> &[Probe] {
    match gate {
        Gate::Probe(probe) => std::slice::from_ref(probe),
        Gate::AnyOf(group) => &group.any_of,
    }
}

/// The state of a gate by those of its probes. A group is open if a member is, unknown if one that is unknown could
/// be, else closed with every member's reason.
fn state(gate: &Gate, outcomes: &[Outcome]) -> Outcome {
    let members = match (gate, outcomes) {
        (Gate::Probe(_), [outcome]) => return outcome.clone(),
        _ => probes(gate),
    };
    let messages = |wanted: fn(&Outcome) -> bool| {
        let named = members
            .iter()
            .zip(outcomes)
            .filter(|(_, outcome)| wanted(outcome));
        let named =
            named.map(|(member, outcome)| format!("{}: {}", member.name, outcome.message()));
        named.collect::<Vec<_>>().join("; ")
    };
    if outcomes.iter().any(Outcome::is_open) {
        Outcome::Open(messages(Outcome::is_open))
    } else if outcomes
        .iter()
        .any(|outcome| matches!(outcome, Outcome::Unknown(_)))
    {
        Outcome::Unknown(messages(|_| true))
    } else {
        Outcome::Closed(messages(|_| true))
    }
}

#[derive(Clone, Copy)]
struct Place {
    rule: usize,
    round: u64,
    gate: usize,
    probe: usize,
}

/// Evaluates one probe for ever, and tells of changes. For files, a change is a reason to look before the period is
/// over; the period is the fallback where file events do not arrive.
async fn evaluate(spec: Probe, place: Place, updates: mpsc::Sender<Update>) {
    let schedule = spec.schedule;
    let checker = Checker::new(&spec.check);
    sleep(schedule.initial_delay).await;
    let mut threshold = Threshold::new(schedule.success_threshold, schedule.failure_threshold);
    let mut events = watched(&spec.check).map(FsWatch::new);
    let mut period = interval(schedule.period);
    period.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut told = None;
    loop {
        tokio::select! {
            _ = period.tick() => {}
            () = changed(&mut events) => {}
        }
        let state = threshold.record(bounded(&checker, &spec).await);
        if told.as_ref() != Some(state) {
            let Place {
                rule,
                round,
                gate,
                probe,
            } = place;
            // The channel is bounded: a busy agent slows its probes down rather than missing one.
            if updates
                .send(Update {
                    rule,
                    round,
                    gate,
                    probe,
                    outcome: state.clone(),
                })
                .await
                .is_err()
            {
                return;
            }
            told = Some(state.clone());
        }
    }
}

async fn bounded(checker: &Checker<'_>, spec: &Probe) -> Outcome {
    let limit = spec.schedule.timeout;
    let no_answer = |_| Outcome::Closed(format!("no answer within {} s", limit.as_secs_f64()));
    timeout(limit, checker.check())
        .await
        .unwrap_or_else(no_answer)
}

async fn changed(events: &mut Option<FsWatch>) {
    match events {
        Some(events) => events.changed().await,
        None => std::future::pending().await,
    }
}

/// A check, with what it keeps from one evaluation to the next.
enum Checker<'a> {
    CniConfig(CniConfigGate),
    File(FileGate),
    HttpGet(&'a HttpGet),
    TcpSocket(&'a TcpSocket),
    Grpc(&'a Grpc),
    Exec(&'a Exec),
}

impl<'a> Checker<'a> {
    fn new(check: &'a Check) -> Self {
        match check {
            Check::CniConfig(spec) => Self::CniConfig(CniConfigGate::new(spec.clone())),
            Check::File(spec) => Self::File(FileGate::new(spec.clone())),
            Check::HttpGet(spec) => Self::HttpGet(spec),
            Check::TcpSocket(spec) => Self::TcpSocket(spec),
            Check::Grpc(spec) => Self::Grpc(spec),
            Check::Exec(spec) => Self::Exec(spec),
        }
    }

    async fn check(&self) -> Outcome {
        match self {
            Self::CniConfig(gate) => gate.check().await,
            Self::File(gate) => gate.check().await,
            Self::HttpGet(spec) => http_get::check(spec).await,
            Self::TcpSocket(spec) => tcp_socket::check(spec).await,
            Self::Grpc(spec) => grpc::check(spec).await,
            Self::Exec(spec) => exec::check(spec).await,
        }
    }
}

/// The path whose changes are worth a look before the period is over.
fn watched(check: &Check) -> Option<&Path> {
    match check {
        Check::CniConfig(spec) => Some(&spec.dir),
        Check::File(spec) => Some(&spec.path),
        _ => None,
    }
}
