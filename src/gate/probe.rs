//! Asks one probe, time and again.

use std::path::Path;

use tokio::time::{MissedTickBehavior, interval, sleep, timeout};

use super::busy::Busy;
use super::cni_config::CniConfigGate;
use super::exec::ExecGate;
use super::file::FileGate;
use super::fs_watch::FsWatch;
use super::report::Reporter;
use super::threshold::Threshold;
use super::{Outcome, grpc, http_get, tcp_socket};
use crate::config::{Check, Grpc, HttpGet, Probe, TcpSocket};

/// File events that are followed between two periods. Whoever writes without end is looked at once a period.
const GLANCES: u32 = 50;

/// Evaluates `spec` for ever, and reports changes. For files, a change is a reason to look before the period is over;
/// the period is the fallback where file events do not arrive.
pub(super) async fn evaluate(spec: Probe, busy: Busy, mut reporter: Reporter) {
    let schedule = spec.schedule;
    let checker = Checker::new(&spec.check, busy);
    sleep(schedule.initial_delay).await;
    let mut threshold = Threshold::new(schedule.success_threshold, schedule.failure_threshold);
    let mut events = watched(&spec.check).map(FsWatch::new);
    let mut period = interval(schedule.period);
    period.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut glances = GLANCES;
    loop {
        tokio::select! {
            _ = period.tick() => {
                glances = GLANCES;
                threshold.record(bounded(&checker, &spec).await);
            }
            () = changed(&mut events), if glances > 0 => {
                glances -= 1;
                if threshold.glance(bounded(&checker, &spec).await) {
                    // What counts is a period away from what counts next.
                    period.reset();
                }
            }
        }
        reporter.report(threshold.state()).await;
    }
}

/// Evaluates `spec` once, delay and thresholds aside.
pub(super) async fn once(spec: &Probe) -> Outcome {
    bounded(&Checker::new(&spec.check, Busy::default()), spec).await
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
    Exec(ExecGate),
}

impl<'a> Checker<'a> {
    fn new(check: &'a Check, busy: Busy) -> Self {
        match check {
            Check::CniConfig(spec) => {
                Self::CniConfig(CniConfigGate::new(spec.clone()).with_busy(busy))
            }
            Check::File(spec) => Self::File(FileGate::new(spec.clone()).with_busy(busy)),
            Check::HttpGet(spec) => Self::HttpGet(spec),
            Check::TcpSocket(spec) => Self::TcpSocket(spec),
            Check::Grpc(spec) => Self::Grpc(spec),
            Check::Exec(spec) => Self::Exec(ExecGate::new(spec).with_busy(busy)),
        }
    }

    async fn check(&self) -> Outcome {
        match self {
            Self::CniConfig(gate) => gate.check().await,
            Self::File(gate) => gate.check().await,
            Self::HttpGet(spec) => http_get::check(spec).await,
            Self::TcpSocket(spec) => tcp_socket::check(spec).await,
            Self::Grpc(spec) => grpc::check(spec).await,
            Self::Exec(gate) => gate.check().await,
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
