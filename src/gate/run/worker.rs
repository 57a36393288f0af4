//! Asks one probe, time and again.

use std::time::{Duration, Instant};

use tokio::time::{MissedTickBehavior, interval, sleep, sleep_until};

use super::threshold::Threshold;
use crate::config::Probe;
use crate::fs_watch::FsWatch;
use crate::gate::probe::busy::Busy;
use crate::gate::report::Reporter;
use crate::gate::{Outcome, probe};
use crate::rate_limit::TokenBucket;

/// Looks between two periods, each for the file events since the last look. An endless writer costs 20 looks a second. The
/// rate is limited and not the number: an event without a look would leave a gate open whose file is gone.
const GLANCES: TokenBucket = TokenBucket::new(20, Duration::from_millis(50));

/// Evaluates `spec` for ever, and reports changes. For files, a change is a reason to look before the period is over;
/// the period is the fallback where file events do not arrive.
pub(super) async fn run(spec: Probe, busy: Busy, mut reporter: Reporter) {
    let schedule = spec.schedule;
    sleep(schedule.initial_delay).await;
    let mut threshold = Threshold::new(schedule.success_threshold, schedule.failure_threshold);
    let mut events = probe::watched(&spec.handler).map(FsWatch::new);
    let mut period = interval(schedule.period);
    period.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut glances = GLANCES;
    loop {
        tokio::select! {
            _ = period.tick() => {
                threshold.record(probe::evaluate(&spec, &busy).await);
            }
            () = changed(&mut events, &glances) => {
                glances.take(Instant::now());
                if threshold.glance(probe::evaluate(&spec, &busy).await) {
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
    probe::evaluate(spec, &Busy::default()).await
}

/// Completes when a change is to be looked at. Events that come earlier are kept until then.
async fn changed(events: &mut Option<FsWatch>, glances: &TokenBucket) {
    let Some(events) = events else {
        return std::future::pending().await;
    };
    if let Some(pause) = glances.next_at(Instant::now()) {
        sleep_until(pause.into()).await;
    }
    events.changed().await;
}

#[cfg(test)]
mod tests;
