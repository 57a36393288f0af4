//! The decision: what to do, by a rule, the Node, the gates and the time. Pure.

mod changes;
mod decide;
mod decision;
mod event;
mod happened;
mod lapse;
mod left_taint;
mod own_taints;
mod pause;
pub mod publication;
mod published_condition;
mod put_backs;
mod retaint_timer;
mod taint_presence;

use std::time::{Duration, Instant};

use crate::boot::Boot;
use crate::config::Rule;
use crate::gate::State;
use crate::node::patch::Action;
use crate::node::view::NodeView;
use crate::rate_limit::TokenBucket;
use crate::taint::TaintMatcher;
pub use decision::Decision;
pub use event::{Notification, RuleEvent, wait_in_words};
use lapse::Lapse;
pub use left_taint::{Left, LeftTaint};
pub use own_taints::OwnTaints;
pub use pause::{BEAT, Pause};
pub use published_condition::PublishedCondition;
pub use put_backs::{PutBacks, TakenOff};
use retaint_timer::RetaintTimer;
use taint_presence::TaintPresence;

/// One rule over time.
#[derive(Debug)]
pub struct RuleState {
    rule: Rule,
    own_taints: OwnTaints,
    decision: Decision,
    /// The Node that the decision is about.
    uid: Option<String>,
    round: u64,
    /// Since when every gate has been open.
    open_since: Option<Instant>,
    /// When the last pause of the process ended.
    paused_at: Option<Instant>,
    lapse: Lapse,
    retaint_timer: RetaintTimer,
    taint_presence: TaintPresence,
    tokens: TokenBucket,
    /// The rule's change that may have taken effect without an answer.
    unanswered: Option<Action>,
    /// The server's message while it refuses the change of this rule, or has failed to make it for some time.
    denied: Option<String>,
    /// Why the last try of the change of this rule failed, if it was not refused.
    failed: Option<String>,
}

impl RuleState {
    /// Nothing is known yet. `boot`: the one that this process has come up with, if it has.
    pub fn new(rule: Rule, boot: Option<Boot>) -> Self {
        Self {
            own_taints: OwnTaints::new(&rule),
            rule,
            decision: Decision::NoNode,
            uid: None,
            round: 0,
            open_since: None,
            paused_at: None,
            lapse: Lapse::default(),
            retaint_timer: RetaintTimer::new(boot),
            taint_presence: TaintPresence::default(),
            tokens: TokenBucket::WRITES,
            unanswered: None,
            denied: None,
            failed: None,
        }
    }

    pub fn rule(&self) -> &Rule {
        &self.rule
    }

    /// The taints that the rule removes.
    pub fn own_taints(&self) -> &OwnTaints {
        &self.own_taints
    }

    /// `retaint` only removes what it has put back before. Nobody would be there to remove a taint again.
    pub fn never_put_back(&mut self) {
        self.own_taints.never_put_back();
    }

    /// The rule removes this `taint` too, as long as the Node has it. An earlier rule of the same name has put it back.
    pub fn adopt(&mut self, taint: TaintMatcher) {
        self.own_taints.adopt(taint);
    }

    /// The decision of the last [`Self::step`].
    pub fn decision(&self) -> Decision {
        self.decision
    }

    /// The Node that the decision is about; `None` before the first.
    pub fn uid(&self) -> Option<&str> {
        self.uid.as_deref()
    }

    /// Increases when the gates must start afresh. Their results of an earlier round do not count.
    pub fn round(&self) -> u64 {
        self.round
    }

    /// Whether the gates are to be evaluated.
    pub fn runs_gates(&self) -> bool {
        self.has_use_for_gates(self.decision)
    }

    /// A rule with `retaint` or `publishCondition` needs its gates without the taint as well.
    fn has_use_for_gates(&self, decision: Decision) -> bool {
        match decision {
            Decision::NotSelected => false,
            decision if decision.is_absent() => {
                self.own_taints.to_put_back().is_some() || self.rule.publish_condition.is_some()
            }
            _ => true,
        }
    }

    /// Records the state of the gates together in this [`Self::round`]. The caller reports every change at once.
    pub fn observe(&mut self, now: Instant, gates: State) {
        self.open_since = (gates == State::Open).then(|| self.open_since.unwrap_or(now));
        self.lapse.observe(now, gates);
        self.retaint_timer.observe(now, gates);
    }

    /// The Node is not watched at `now`. The cause may have closed gates as well, on every node at once, so `retaint.after`
    /// counts from when the Node is watched again.
    pub fn unwatched(&mut self, now: Instant) {
        self.retaint_timer.restart(now);
    }

    /// Starts a new [`Self::round`]: the earlier results of the gates do not count.
    pub fn start_afresh(&mut self, now: Instant) {
        self.round += 1;
        self.observe(now, State::Unknown);
    }

    /// When every gate will have been open for `stableFor` if none closes; `None` while one is not open.
    pub fn stable_at(&self) -> Option<Instant> {
        self.open_since.map(|since| since + self.rule.stable_for)
    }

    /// Whether a condition that was published while every gate was open for `stableFor` has become untrue since.
    pub fn has_lapsed(&self) -> bool {
        self.lapse.has_lapsed()
    }

    /// Since when the taint has been there; `None` while it is absent.
    pub fn seen_since(&self) -> Option<Instant> {
        self.taint_presence.since()
    }

    fn since_seen(&self, now: Instant) -> Option<Duration> {
        self.seen_since().map(|seen| now.duration_since(seen))
    }

    /// Follows another version of the rule. What is known of the taint stays. `gates` is as for [`Self::observe`], of the
    /// gates of this version.
    pub fn reconfigure(&mut self, now: Instant, rule: Rule, gates: State) {
        if self.rule.deadline != rule.deadline {
            self.taint_presence.forget_deadline();
        }
        if self.rule.retaint.is_none() {
            self.retaint_timer.forget_boot();
        }
        self.own_taints.follow(&rule);
        self.rule = rule;
        self.observe(now, gates);
        // A change that another version wanted is not written before this version has decided.
        self.decision = match self.decision {
            Decision::Ready => Decision::Waiting,
            Decision::Lapsed => Decision::Absent,
            decision => decision,
        };
    }

    /// Decides again, and returns what has happened.
    pub fn step(&mut self, now: Instant, node: Option<&NodeView>) -> Option<RuleEvent> {
        let recreated = self.recreated(node);
        if recreated {
            self.tokens = TokenBucket::WRITES;
            self.retaint_timer.arm();
            (self.unanswered, self.denied, self.failed) = (None, None, None);
        }
        let before = if recreated {
            Decision::NoNode
        } else {
            self.decision
        };
        if let Some(node) = node {
            self.own_taints.observe(node, recreated);
        }
        let seen = node.map_or(Decision::NoNode, |node| self.look_at(node));
        let comes_back = before.is_absent() && seen.is_tainted();
        let gates_start = !self.has_use_for_gates(before) && self.has_use_for_gates(seen);
        if recreated || comes_back || gates_start {
            self.start_afresh(now);
        }
        if self.rule.gates.is_empty() {
            self.observe(now, State::Open);
        }
        if self.is_stable(now) {
            self.lapse.end();
            self.retaint_timer.arm();
        }
        if seen == Decision::NotSelected {
            // What is put back there stays no longer than that.
            self.retaint_timer.arm();
        }
        let since_seen = self.since_seen(now);
        if seen != Decision::Waiting {
            self.taint_presence.end();
        } else if recreated || self.taint_presence.since().is_none() {
            self.taint_presence.begin(now);
        }
        if before.is_tainted() && seen == Decision::Absent {
            self.retaint_timer.restart(now);
        }
        self.taint_presence.update_overdue(now, self.rule.deadline);
        self.decision = match (node, seen) {
            (Some(node), Decision::Waiting) => self.decide(now, node),
            (Some(node), Decision::Absent) => self.decide_without_taint(now, node),
            _ => seen,
        };
        if self.decision != Decision::Lapsed && !self.decision.is_tainted() {
            (self.denied, self.failed) = (None, None);
        }
        // If a time passes in the same step, the next step reports that.
        let (deadline, waits) = (self.rule.deadline, self.waits());
        self.happened(now, before, node, since_seen)
            .or_else(|| self.taint_presence.report(now, deadline, waits))
    }

    /// Whether every gate has been open for `stableFor`.
    pub fn is_stable(&self, now: Instant) -> bool {
        self.stable_at().is_some_and(|stable| stable <= now)
    }

    fn waits(&self) -> bool {
        matches!(self.decision, Decision::Waiting | Decision::Held)
    }

    /// Whether the Node has had the taint for the whole of `deadline.after`.
    pub fn is_overdue(&self) -> bool {
        self.taint_presence.is_overdue()
    }

    /// When the decision changes, or something happens, by time alone.
    pub fn wake_at(&self) -> Option<Instant> {
        // Gates that have opened since the decision.
        let stable = self.stable_at();
        let opened = stable.filter(|_| self.decision == Decision::Waiting);
        let deadline = self.rule.deadline;
        let report = self.taint_presence.report_at(deadline, self.waits());
        let times = [self.decision.until(), opened, report];
        times.into_iter().flatten().min()
    }

    /// Records the Node, and returns whether it is another one than before.
    fn recreated(&mut self, node: Option<&NodeView>) -> bool {
        let Some(node) = node else { return false };
        self.uid
            .replace(node.metadata.uid.clone())
            .is_some_and(|uid| uid != node.metadata.uid)
    }
}

#[cfg(test)]
mod tests;
