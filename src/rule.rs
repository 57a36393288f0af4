//! The decision: a rule, the Node and the gates, at some time, give what is to be done. Pure.

mod decide;
mod decision;
mod published_condition;
mod retaint_timer;
mod taint_presence;

use std::time::Instant;

use crate::boot::Boot;
use crate::config::Rule;
use crate::gate::State;
use crate::node::view::NodeView;
use crate::rate_limit::TokenBucket;
pub use decision::{Decision, Occurrence};
pub use published_condition::PublishedCondition;
use retaint_timer::RetaintTimer;
use taint_presence::TaintPresence;

/// One rule over time.
#[derive(Debug)]
pub struct RuleState {
    rule: Rule,
    decision: Decision,
    /// The Node that the decision is about.
    uid: Option<String>,
    round: u64,
    /// Since when every gate has been open.
    open_since: Option<Instant>,
    retaint_timer: RetaintTimer,
    taint_presence: TaintPresence,
    tokens: TokenBucket,
}

impl RuleState {
    /// Nothing is known yet. `boot`: the one that this process has come up with, if it has.
    pub fn new(rule: Rule, boot: Option<Boot>) -> Self {
        Self {
            rule,
            decision: Decision::NoNode,
            uid: None,
            round: 0,
            open_since: None,
            retaint_timer: RetaintTimer::new(boot),
            taint_presence: TaintPresence::default(),
            tokens: TokenBucket::WRITES,
        }
    }

    /// The rule.
    pub fn rule(&self) -> &Rule {
        &self.rule
    }

    /// The decision of the last [`Self::step`].
    pub fn decision(&self) -> Decision {
        self.decision
    }

    /// The Node that the decision is about; `None` before the first.
    pub fn uid(&self) -> Option<&str> {
        self.uid.as_deref()
    }

    /// Grows whenever the gates must start afresh. What they said in an earlier round is no evidence.
    pub fn round(&self) -> u64 {
        self.round
    }

    /// Whether the gates are to be evaluated.
    pub fn runs_gates(&self) -> bool {
        self.has_use_for_gates(self.decision)
    }

    /// A rule that does something without the taint, too, never lets its gates rest.
    fn has_use_for_gates(&self, decision: Decision) -> bool {
        match decision {
            Decision::NotSelected => false,
            decision if decision.is_absent() => {
                self.rule.retaint.is_some() || self.rule.publish_condition.is_some()
            }
            _ => true,
        }
    }

    /// Takes in what the gates say together in this [`Self::round`]. To be told of every change, at once.
    pub fn observe(&mut self, now: Instant, gates: State) {
        self.open_since = (gates == State::Open).then(|| self.open_since.unwrap_or(now));
        self.retaint_timer.observe(now, gates);
    }

    /// The process has been stopped or starved until `now`: what the gates said before is too old to count on.
    pub fn paused(&mut self, now: Instant) {
        self.start_afresh(now);
    }

    /// The Node is not watched at `now`: whatever hit the API server may have closed gates too, on every node at once. A
    /// put-back counts from when that is over.
    pub fn unwatched(&mut self, now: Instant) {
        self.retaint_timer.begin_to_count(now);
    }

    fn start_afresh(&mut self, now: Instant) {
        self.round += 1;
        self.observe(now, State::Unknown);
    }

    /// When every gate will have been open for `stableFor`, if all taint_presence so; `None` while one is not open.
    pub fn stable_at(&self) -> Option<Instant> {
        self.open_since.map(|since| since + self.rule.stable_for)
    }

    /// Since when the taint has been there; `None` while it is absent.
    pub fn seen_since(&self) -> Option<Instant> {
        self.taint_presence.since()
    }

    /// Goes by another version of the rule from now on. What is known of the taint stays; `gates` is as for
    /// [`Self::observe`], of the gates of this version.
    pub fn reconfigure(&mut self, now: Instant, rule: Rule, gates: State) {
        if self.rule.deadline != rule.deadline {
            self.taint_presence.expect_another_deadline();
        }
        if self.rule.retaint.is_none() {
            self.retaint_timer.forget_boot();
        }
        self.rule = rule;
        self.observe(now, gates);
        // What another version wanted written is not, before this one has decided.
        self.decision = match self.decision {
            Decision::Ready => Decision::Waiting,
            Decision::Lapsed => Decision::Absent,
            decision => decision,
        };
    }

    /// Decides anew.
    pub fn step(&mut self, now: Instant, node: Option<&NodeView>) -> Option<Occurrence> {
        let recreated = self.recreated(node);
        if recreated {
            self.tokens = TokenBucket::WRITES;
            self.retaint_timer.arm();
        }
        let before = if recreated {
            Decision::NoNode
        } else {
            self.decision
        };
        let seen = node.map_or(Decision::NoNode, |node| self.see(node));
        let comes_back = before.is_absent() && seen.is_tainted();
        let gates_start = !self.has_use_for_gates(before) && self.has_use_for_gates(seen);
        if recreated || comes_back || gates_start {
            self.start_afresh(now);
        }
        if self.rule.gates.is_empty() {
            self.observe(now, State::Open);
        }
        if self.is_stable(now) {
            self.retaint_timer.arm();
        }
        if seen != Decision::Waiting {
            self.taint_presence.end();
        } else if recreated || self.taint_presence.since().is_none() {
            self.taint_presence.begin(now);
        }
        if before.is_tainted() && seen == Decision::Absent {
            self.retaint_timer.begin_to_count(now);
        }
        self.taint_presence
            .look_at_deadline(now, self.rule.deadline);
        self.decision = match (node, seen) {
            (Some(node), Decision::Waiting) => self.decide(now, node),
            (Some(node), Decision::Absent) => self.decide_without_taint(now, node),
            _ => seen,
        };
        // What happens comes before what has taken its time, which is told of in the next step then.
        self.happened(before).or_else(|| self.has_taken_long(now))
    }

    /// What became of the taint since the decision `before`.
    fn happened(&self, before: Decision) -> Option<Occurrence> {
        match (before, self.decision) {
            (Decision::Limited { .. }, Decision::Limited { .. }) => None,
            (_, Decision::Limited { .. }) => Some(Occurrence::Fight),
            (before, after) if !before.is_tainted() && after.is_tainted() => {
                Some(Occurrence::Tainted)
            }
            (before, after) if before.is_tainted() && after.is_absent() => {
                Some(Occurrence::RemovedByOther {
                    ready: before.is_ready(),
                })
            }
            _ => None,
        }
    }

    fn has_taken_long(&mut self, now: Instant) -> Option<Occurrence> {
        let is_due = |at: Option<Instant>| at.is_some_and(|at| at <= now);
        if is_due(self.taint_presence.overdue_at(self.rule.deadline)) {
            self.taint_presence.tell_overdue();
            Some(Occurrence::Deadline(self.rule.deadline.action))
        } else if is_due(self.long_wait_at()) {
            self.taint_presence.tell();
            Some(Occurrence::LongWait)
        } else {
            None
        }
    }

    /// Whether every gate has been open for `stableFor`.
    pub fn is_stable(&self, now: Instant) -> bool {
        self.stable_at().is_some_and(|stable| stable <= now)
    }

    /// When there will be a long wait to tell of.
    fn long_wait_at(&self) -> Option<Instant> {
        let waits = matches!(self.decision, Decision::Waiting | Decision::Held);
        self.taint_presence
            .long_at(self.rule.deadline)
            .filter(|_| waits)
    }

    /// Whether the taint has been there for too long.
    pub fn is_overdue(&self) -> bool {
        self.taint_presence.is_overdue()
    }

    /// When the decision, or what is to be told, changes by time alone.
    pub fn wake_at(&self) -> Option<Instant> {
        let deadline = self.taint_presence.overdue_at(self.rule.deadline);
        // Gates that have opened since the decision.
        let opened = self
            .stable_at()
            .filter(|_| self.decision == Decision::Waiting);
        let times = [self.decision.until(), self.long_wait_at(), deadline, opened];
        times.into_iter().flatten().min()
    }

    /// Whether `node` is another Node than the one before, and remembers it.
    fn recreated(&mut self, node: Option<&NodeView>) -> bool {
        let Some(node) = node else { return false };
        self.uid
            .replace(node.metadata.uid.clone())
            .is_some_and(|uid| uid != node.metadata.uid)
    }

    /// A removal succeeded: what comes next is not somebody else's doing.
    pub fn removed(&mut self, now: Instant) {
        self.decision = Decision::Absent;
        self.taint_presence.end();
        self.retaint_timer.begin_to_count(now);
        if !self.runs_gates() {
            self.observe(now, State::Unknown);
        }
        self.removed_without_answer(now);
    }

    /// A removal has turned out to have succeeded: it counts like any other.
    pub fn removed_without_answer(&mut self, now: Instant) {
        self.tokens.take(now);
    }

    /// The taint has been put back: what comes next is not somebody else's doing. If they take it off although a gate is
    /// closed, that is their decision: it is not put back again before every gate has been open.
    pub fn put_back(&mut self, now: Instant) {
        self.decision = Decision::Waiting;
        self.taint_presence.begin(now);
        self.retaint_timer.disarm();
    }

    /// The taint was put back, and is not there all the same: somebody who may decides so, as above.
    pub fn put_back_undone(&mut self) {
        self.decision = Decision::Absent;
        self.retaint_timer.disarm();
    }
}

#[cfg(test)]
mod tests;
