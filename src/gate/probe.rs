//! Asks one probe, time and again.

use std::path::Path;
use std::time::{Duration, Instant};

use tokio::time::{MissedTickBehavior, interval, sleep, sleep_until, timeout};

use super::busy::Busy;
use super::report::Reporter;
use super::threshold::Threshold;
use super::{Outcome, cni_config, exec, file, grpc, http_get, tcp_socket};
use crate::config::{Check, Probe};
use crate::fs_watch::FsWatch;
use crate::tokens::Tokens;

/// Looks between two periods, each for the file events since the last one. Whoever writes without end costs 20 looks a
/// second. The rate is limited and not the number: an event without a look would leave a gate open whose file is gone.
const GLANCES: Tokens = Tokens::new(20, Duration::from_millis(50));

/// Evaluates `spec` for ever, and reports changes. For files, a change is a reason to look before the period is over;
/// the period is the fallback where file events do not arrive.
pub(super) async fn evaluate(spec: Probe, busy: Busy, mut reporter: Reporter) {
    let schedule = spec.schedule;
    sleep(schedule.initial_delay).await;
    let mut threshold = Threshold::new(schedule.success_threshold, schedule.failure_threshold);
    let mut events = watched(&spec.check).map(FsWatch::new);
    let mut period = interval(schedule.period);
    period.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut glances = GLANCES;
    loop {
        tokio::select! {
            _ = period.tick() => {
                threshold.record(bounded(&spec, &busy).await);
            }
            () = changed(&mut events, &glances) => {
                glances.take(Instant::now());
                if threshold.glance(bounded(&spec, &busy).await) {
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
    bounded(spec, &Busy::default()).await
}

async fn bounded(spec: &Probe, busy: &Busy) -> Outcome {
    let limit = spec.schedule.timeout;
    let no_answer = |_| Outcome::Closed(format!("no answer within {} s", limit.as_secs_f64()));
    let answer = async {
        match &spec.check {
            Check::CniConfig(spec) => cni_config::check(spec, busy).await,
            Check::File(spec) => file::check(spec, busy).await,
            Check::HttpGet(spec) => http_get::check(spec, busy).await,
            Check::TcpSocket(spec) => tcp_socket::check(spec, busy).await,
            Check::Grpc(spec) => grpc::check(spec, busy).await,
            Check::Exec(spec) => exec::check(spec, busy).await,
        }
    };
    timeout(limit, answer).await.unwrap_or_else(no_answer)
}

/// Completes when a change is to be looked at. Events that come earlier are kept until then.
async fn changed(events: &mut Option<FsWatch>, glances: &Tokens) {
    let Some(events) = events else {
        return std::future::pending().await;
    };
    if let Some(pause) = glances.next_at(Instant::now()) {
        sleep_until(pause.into()).await;
    }
    events.changed().await;
}

/// The path whose changes are worth a look before the period is over.
fn watched(check: &Check) -> Option<&Path> {
    match check {
        Check::CniConfig(spec) => Some(&spec.dir),
        Check::File(spec) => Some(&spec.path),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
