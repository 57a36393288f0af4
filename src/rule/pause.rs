//! What it means for a rule that the process did nothing for a while. Pure.
//!
//! While nothing is evaluated, a gate may close and open unnoticed. So after a pause the gates start afresh. A process that
//! gets too little processor time pauses again and again, and a rule that started afresh each time would never be ready:
//! then only the time that nobody saw does not count.

use std::time::{Duration, Instant};

use super::RuleState;
use crate::boot::Moment;

/// The loop of the agent wakes at least so often while a decision counts on gates. If it wakes later by more than this,
/// the process, its cgroup or the machine was paused.
pub const BEAT: Duration = Duration::from_secs(1);
/// After a longer pause, nothing that was seen before it counts.
const LONG: Duration = Duration::from_secs(10);
/// A pause belongs to a series if it follows the last one within this time plus the time that the rule waits for.
const SERIES: Duration = Duration::from_mins(1);

/// A pause of the process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pause {
    /// In which the machine ran and the process did nothing, beyond what is usual.
    pub unseen: Duration,
    /// Whether the machine was suspended, or the pause was long.
    pub is_long: bool,
}

impl Pause {
    /// The pause since the last wake-up, if there was one.
    pub(crate) fn between(last: Moment, now: Moment) -> Option<Self> {
        let elapsed = now.elapsed.saturating_sub(last.elapsed);
        let awake = now.awake.saturating_duration_since(last.awake);
        // A machine that is suspended for a moment is no more than late.
        (elapsed.max(awake) > 2 * BEAT).then(|| Self {
            unseen: awake.saturating_sub(BEAT),
            is_long: awake > LONG || elapsed.saturating_sub(awake) > BEAT,
        })
    }
}

impl RuleState {
    /// The process did nothing until `now`. Returns whether the gates start afresh.
    pub fn paused(&mut self, now: Instant, pause: Pause) -> bool {
        let retaint_after = self.rule.retaint.as_ref().map(|retaint| retaint.after);
        let waits_for = self.rule.stable_for.max(retaint_after.unwrap_or_default());
        let last = self.paused_at.replace(now);
        let in_series = last.is_some_and(|last| now - last < waits_for + SERIES);
        let starts_afresh = pause.is_long || !in_series;
        if starts_afresh {
            self.start_afresh(now);
        } else {
            let later = |since: Instant| (since + pause.unseen).min(now);
            self.open_since = self.open_since.map(later);
            self.retaint_timer.skip(now, pause.unseen);
        }
        starts_afresh
    }
}
