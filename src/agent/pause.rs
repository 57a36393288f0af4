//! What the agent does after a pause of the process.

use std::time::Instant;

use tokio::sync::Notify;
use tracing::warn;

use super::Agent;
use crate::boot::Moment;
use crate::rate_limit::{RepeatFilter, TokenBucket};
use crate::rule::{BEAT, Pause};

pub(super) struct Pauses<'a> {
    /// Before the loop last decided. A pause while it decides is a pause as well.
    last: Moment,
    /// Whether that decision counts on gates, so that a pause since then matters.
    counts_on_gates: bool,
    /// Starts another watch of the Node.
    watch_again: &'a Notify,
    /// Log lines about pauses after which the gates start afresh.
    log_lines: TokenBucket,
    /// Log lines about a starved process.
    starved: RepeatFilter,
}

impl<'a> Pauses<'a> {
    pub(super) fn new(watch_again: &'a Notify) -> Self {
        Self {
            last: Moment::now(),
            counts_on_gates: false,
            watch_again,
            log_lines: TokenBucket::LOG_LINES,
            starved: RepeatFilter::default(),
        }
    }

    /// The loop has decided.
    pub(super) fn decided(&mut self, counts_on_gates: bool) {
        self.counts_on_gates = counts_on_gates;
    }

    /// When the loop must wake to show that it is not paused.
    pub(super) fn beat_at(&self) -> Option<Instant> {
        self.counts_on_gates.then(|| self.last.awake + BEAT)
    }
}

impl Agent<'_> {
    /// Call it before each decision.
    pub(super) fn detect_pause(&mut self, moment: Moment) {
        let now = moment.awake;
        let last = std::mem::replace(&mut self.pauses.last, moment);
        let pause = Pause::between(last, moment);
        let Some(pause) = pause.filter(|_| self.pauses.counts_on_gates) else {
            return;
        };
        let mut start_afresh = pause.is_long;
        for rule in &mut self.rules {
            start_afresh |= rule.state.paused(now, pause);
        }
        if pause.is_long {
            // The connection may be dead, and the Node another one by now.
            self.connection.outdated();
            self.pauses.watch_again.notify_one();
        }
        if start_afresh {
            if self.pauses.log_lines.try_take(now) {
                warn!("the process was paused; evaluating the gates again");
            }
            return;
        }
        let starved = "the process is paused again and again; the pauses do not count as stableFor: give its container more CPU time";
        if self.pauses.starved.should_log(now, starved) {
            warn!("{starved}");
        }
    }
}
