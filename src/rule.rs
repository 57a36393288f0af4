//! The decision: a rule, the Node and the gates, at some time, give what is to be done. Pure.

mod tokens;

use std::time::Instant;

use crate::config::{DeadlineAction, Rule};
use crate::node::view::NodeView;
use tokens::Tokens;

/// Where a rule stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decision {
    /// The Node has not been seen (the API is away, or there is no such Node): gates run meanwhile.
    NoNode,
    /// `nodeSelector` does not select the Node: nothing to do.
    NotSelected,
    /// The Node does not have the taint: nothing to do, and gates rest.
    Absent,
    /// Some gate is not open.
    Waiting,
    /// Every gate is open, since less than `stableFor`.
    Stabilizing {
        /// When it has been open for long enough.
        until: Instant,
    },
    /// Ready, but Karpenter would put the taint back until it has registered the Node.
    Held,
    /// Ready, but the taint has come back so often that somebody else wants it there.
    Limited {
        /// When the next removal is due.
        until: Instant,
    },
    /// Remove the taint now.
    Ready,
}

impl Decision {
    /// Whether the rule's gates are to be evaluated.
    #[must_use]
    pub fn runs_gates(self) -> bool {
        !matches!(self, Self::NotSelected | Self::Absent)
    }

    /// Whether the Node has the taint, as far as is known.
    #[must_use]
    pub fn is_tainted(self) -> bool {
        !matches!(self, Self::NoNode | Self::NotSelected | Self::Absent)
    }

    /// Whether every gate is open, for long enough.
    #[must_use]
    pub fn is_ready(self) -> bool {
        matches!(self, Self::Held | Self::Limited { .. } | Self::Ready)
    }

    /// When the decision changes by time alone.
    #[must_use]
    pub fn until(self) -> Option<Instant> {
        match self {
            Self::Stabilizing { until } | Self::Limited { until } => Some(until),
            _ => None,
        }
    }

    /// One word for logs, status and metrics.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::NoNode => "no-node",
            Self::NotSelected => "not-selected",
            Self::Absent => "absent",
            Self::Waiting => "waiting",
            Self::Stabilizing { .. } => "stabilizing",
            Self::Held => "held",
            Self::Limited { .. } => "limited",
            Self::Ready => "ready",
        }
    }
}

/// What happened to a rule, for people to know.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Occurrence {
    /// The taint was seen.
    Tainted,
    /// It is gone, and nobody here removed it.
    RemovedByOther {
        /// Whether every gate was open by then: if not, it was removed too early.
        ready: bool,
    },
    /// It comes back as often as it is removed.
    Fight,
    /// It has been there for the whole of `deadline.after`.
    Deadline(DeadlineAction),
}

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
    /// When the taint was first seen, since it was last absent.
    seen_since: Option<Instant>,
    /// Whether the deadline has been told of since then.
    overdue: bool,
    tokens: Tokens,
}

impl RuleState {
    /// Nothing is known yet.
    #[must_use]
    pub fn new(rule: Rule) -> Self {
        let tokens = Tokens::default();
        Self {
            rule,
            decision: Decision::NoNode,
            uid: None,
            round: 0,
            open_since: None,
            seen_since: None,
            overdue: false,
            tokens,
        }
    }

    /// The rule.
    #[must_use]
    pub fn rule(&self) -> &Rule {
        &self.rule
    }

    /// The decision of the last [`Self::step`].
    #[must_use]
    pub fn decision(&self) -> Decision {
        self.decision
    }

    /// Grows whenever the gates must start afresh. What they said in an earlier round is no evidence.
    #[must_use]
    pub fn round(&self) -> u64 {
        self.round
    }

    /// Takes in whether every gate is open, by what it said in this [`Self::round`]. To be told of every change, at
    /// any time: a gate that was closed for a moment starts `stableFor` again.
    pub fn observe(&mut self, now: Instant, all_open: bool) {
        self.open_since = all_open.then(|| self.open_since.unwrap_or(now));
    }

    /// The process has been stopped or starved until `now`: what the gates said before is too old to count on.
    pub fn paused(&mut self, now: Instant) {
        self.round += 1;
        self.observe(now, false);
    }

    /// When every gate will have been open for `stableFor`, if all stay so; `None` while one is not open.
    #[must_use]
    pub fn stable_at(&self) -> Option<Instant> {
        self.open_since.map(|since| since + self.rule.stable_for)
    }

    /// Since when the taint has been there; `None` while it is absent.
    #[must_use]
    pub fn seen_since(&self) -> Option<Instant> {
        self.seen_since
    }

    /// Decides anew.
    pub fn step(&mut self, now: Instant, node: Option<&NodeView>) -> Option<Occurrence> {
        let recreated = self.recreated(node);
        if recreated {
            self.tokens = Tokens::default();
        }
        let before = if recreated {
            Decision::NoNode
        } else {
            self.decision
        };
        let seen = node.map_or(Decision::NoNode, |node| self.see(node));
        if recreated || (!before.runs_gates() && seen.runs_gates()) {
            self.round += 1;
            self.observe(now, false);
        }
        if self.rule.gates.is_empty() {
            self.observe(now, true);
        }
        self.seen_since = if seen == Decision::Waiting {
            self.seen_since.filter(|_| !recreated).or(Some(now))
        } else {
            None
        };
        let was_overdue = self.overdue;
        self.overdue = self.deadline_at().is_some_and(|deadline| deadline <= now);
        self.decision = match (node, seen) {
            (Some(node), Decision::Waiting) => self.decide(now, node),
            _ => seen,
        };
        match (before, self.decision) {
            _ if self.overdue && !was_overdue => {
                Some(Occurrence::Deadline(self.rule.deadline.action))
            }
            (Decision::Limited { .. }, Decision::Limited { .. }) => None,
            (_, Decision::Limited { .. }) => Some(Occurrence::Fight),
            (before, after) if !before.is_tainted() && after.is_tainted() => {
                Some(Occurrence::Tainted)
            }
            (before, Decision::Absent) if before.is_tainted() => Some(Occurrence::RemovedByOther {
                ready: before.is_ready(),
            }),
            _ => None,
        }
    }

    /// When the taint will have been there for too long; `None` while it is absent.
    #[must_use]
    pub fn deadline_at(&self) -> Option<Instant> {
        self.seen_since
            .map(|since| since + self.rule.deadline.after)
    }

    /// Whether the taint has been there for too long.
    #[must_use]
    pub fn is_overdue(&self) -> bool {
        self.overdue
    }

    /// When the decision, or what is to be told, changes by time alone.
    #[must_use]
    pub fn wake_at(&self) -> Option<Instant> {
        let deadline = self.deadline_at().filter(|_| !self.overdue);
        // Gates that have opened since the decision.
        let opened = self
            .stable_at()
            .filter(|_| self.decision == Decision::Waiting);
        let times = [self.decision.until(), deadline, opened];
        times.into_iter().flatten().min()
    }

    /// Whether `node` is another Node than the one before, and remembers it.
    fn recreated(&mut self, node: Option<&NodeView>) -> bool {
        let Some(node) = node else { return false };
        self.uid
            .replace(node.metadata.uid.clone())
            .is_some_and(|uid| uid != node.metadata.uid)
    }

    /// What the Node alone says: [`Decision::Waiting`] where it has the taint.
    fn see(&self, node: &NodeView) -> Decision {
        if !node.selected_by(&self.rule.node_selector) {
            Decision::NotSelected
        } else if node.has(&self.rule.taint) {
            Decision::Waiting
        } else {
            Decision::Absent
        }
    }

    /// What the gates and the time say of a Node with the taint.
    fn decide(&self, now: Instant, node: &NodeView) -> Decision {
        let fails_open = self.overdue && self.rule.deadline.action == DeadlineAction::Remove;
        let stable = match self.stable_at() {
            _ if fails_open => now,
            Some(stable) => stable,
            None => return Decision::Waiting,
        };
        if now < stable {
            Decision::Stabilizing { until: stable }
        } else if node.awaits_registration() {
            Decision::Held
        } else if let Some(until) = self.tokens.next_at(now) {
            Decision::Limited { until }
        } else {
            Decision::Ready
        }
    }

    /// A removal succeeded: what comes next is not somebody else's doing.
    pub fn removed(&mut self, now: Instant) {
        self.decision = Decision::Absent;
        self.seen_since = None;
        self.overdue = false;
        self.observe(now, false);
        self.tokens.take(now);
    }
}

#[cfg(test)]
mod tests;
