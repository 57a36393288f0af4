//! The loop of one probe.

use std::time::{Duration, Instant};

use tokio::time::{MissedTickBehavior, interval, sleep, sleep_until};

use super::threshold::Threshold;
use crate::config::Probe;
use crate::fs_watch::FsWatch;
use crate::gate::probe::{self, lock::ProbeLock};
use crate::gate::report::Reporter;
use crate::rate_limit::TokenBucket;

/// Evaluations between two periods, each for the file events since the last one. An endless writer costs 20 a second.
/// Their rate is limited and not their number: an event without an evaluation would leave a gate open whose file is gone.
const EARLY: TokenBucket = TokenBucket::new(20, Duration::from_millis(50));

/// Evaluates `spec` forever, and reports changes. A file that changes is evaluated before the period is over; the period
/// is the fallback where file events do not arrive.
pub(super) async fn run(
    spec: Probe,
    node_name: Option<String>,
    lock: ProbeLock,
    mut reporter: Reporter,
) {
    let schedule = spec.schedule;
    let evaluate = || probe::evaluate(&spec, node_name.as_deref(), &lock);
    sleep(schedule.initial_delay).await;
    let mut threshold = Threshold::new(schedule.success_threshold, schedule.failure_threshold);
    let mut events = probe::watch(&spec.handler);
    let mut period = interval(schedule.period);
    period.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut early = EARLY;
    loop {
        tokio::select! {
            _ = period.tick() => {
                threshold.record(evaluate().await);
            }
            () = changed(&mut events, &early) => {
                early.take(Instant::now());
                if threshold.record_early(evaluate().await) {
                    // The next answer that counts is a period away.
                    period.reset();
                }
            }
        }
        reporter.report(threshold.outcome()).await;
    }
}

/// Completes when a change must be evaluated. Events that come earlier are kept until then.
async fn changed(events: &mut Option<FsWatch>, early: &TokenBucket) {
    let Some(events) = events else {
        return std::future::pending().await;
    };
    if let Some(pause) = early.next_at(Instant::now()) {
        sleep_until(pause.into()).await;
    }
    events.changed().await;
}

#[cfg(test)]
mod tests;
