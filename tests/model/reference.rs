//! A small model of one rule: what it may write, by the contract alone.

use std::time::{Duration, Instant};

use untaint::boot::Boot;
use untaint::config::{DeadlineAction, Rule};
use untaint::gate::State;
use untaint::node::patch::{Action, Change};
use untaint::node::view::NodeView;

use crate::server::{REGISTERED, UNREGISTERED};

const BURST: usize = 5;
const REFILL: Duration = Duration::from_secs(10);

/// How the Node was last seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sight {
    Nothing,
    NotSelected,
    Absent,
    Tainted,
}

/// What a rule may write, by the contract alone.
#[derive(Debug)]
pub(crate) struct Reference {
    rule: Rule,
    boot: Option<Boot>,
    uid: Option<String>,
    sight: Sight,
    /// Since when the gates have been open, by reports since the taint last appeared.
    open_since: Option<Instant>,
    closed_since: Option<Instant>,
    seen_since: Option<Instant>,
    /// Whether every gate has been open since the last put-back.
    armed: bool,
    removals: Vec<Instant>,
    /// What may have taken effect without an answer.
    unanswered: Option<Action>,
}

impl Reference {
    pub(crate) fn new(rule: Rule, boot: Option<Boot>) -> Self {
        Self {
            rule,
            boot,
            uid: None,
            sight: Sight::Nothing,
            open_since: None,
            closed_since: None,
            seen_since: None,
            armed: true,
            removals: Vec::new(),
            unanswered: None,
        }
    }

    fn asks_gates(&self, sight: Sight) -> bool {
        match sight {
            Sight::Nothing | Sight::Tainted => true,
            Sight::NotSelected => false,
            Sight::Absent => self.rule.retaint.is_some(),
        }
    }

    pub(crate) fn observe(&mut self, now: Instant, gates: State) {
        let since = |known: Option<Instant>, is_so: bool| is_so.then_some(known.unwrap_or(now));
        self.open_since = since(self.open_since, gates == State::Open);
        self.closed_since = since(self.closed_since, gates == State::Closed);
        if gates == State::Open {
            self.boot = None;
        }
    }

    pub(crate) fn paused(&mut self) {
        (self.open_since, self.closed_since) = (None, None);
    }

    pub(crate) fn reconfigure(&mut self, now: Instant, rule: Rule, gates: State) {
        if self.rule.retaint.is_none() {
            self.boot = None;
        }
        self.rule = rule;
        self.observe(now, gates);
    }

    /// Whether a change is about the rule's taint, by what the rule last saw.
    pub(crate) fn owns(&self, change: &Change) -> bool {
        let expected = match change.action {
            Action::Remove => Sight::Tainted,
            Action::PutBack => Sight::Absent,
        };
        let mut taints = change.taints.iter();
        self.sight == expected && taints.any(|taint| self.rule.taint.matches(taint))
    }

    /// The server accepted a change. Returns the number of its taints that are to be reported.
    pub(crate) fn accepted(&mut self, now: Instant, change: &Change, node: &NodeView) -> usize {
        if !self.owns(change) {
            return 0;
        }
        self.unanswered = None;
        let is_there = self.has_taint(node);
        let taints = change.taints.iter();
        let mine = taints.filter(|taint| self.rule.taint.matches(taint));
        let mine = mine.count();
        match change.action {
            Action::Remove => {
                self.sight = Sight::Absent;
                self.seen_since = None;
                self.closed_since = self.closed_since.map(|_| now);
                if !self.asks_gates(self.sight) {
                    self.paused();
                }
                self.removals.push(now);
                mine
            }
            Action::PutBack if is_there => {
                self.put_back(now);
                1
            }
            // The server accepted the put-back and undid it.
            Action::PutBack => {
                self.sight = Sight::Absent;
                self.armed = false;
                mine
            }
        }
    }

    pub(crate) fn unanswered(&mut self, change: &Change) {
        if self.owns(change) {
            self.unanswered = Some(change.action);
        }
    }

    /// A change that has not taken effect by the time of a read never will.
    pub(crate) fn read(&mut self, node: &NodeView) {
        let is_undone = match self.unanswered {
            Some(Action::Remove) => self.has_taint(node),
            Some(Action::PutBack) => !self.has_taint(node),
            None => false,
        };
        if is_undone {
            self.unanswered = None;
        }
    }

    fn put_back(&mut self, now: Instant) {
        self.sight = Sight::Tainted;
        self.seen_since = Some(now);
        self.armed = false;
    }

    fn has_taint(&self, node: &NodeView) -> bool {
        let mut taints = node.taints.iter();
        taints.any(|taint| self.rule.taint.matches(taint))
    }

    /// The Node is not watched. `retaint.after` counts from when it is watched again.
    pub(crate) fn unwatched(&mut self, now: Instant) {
        self.closed_since = self.closed_since.map(|_| now);
    }

    /// Returns whether the rule's own change, which had no answer, has added or removed the taint.
    pub(crate) fn step(&mut self, now: Instant, node: Option<&NodeView>) -> bool {
        let uid = node.map(|node| node.metadata.uid.clone());
        let recreated = uid.is_some() && self.uid.is_some() && uid != self.uid;
        self.uid = uid.or(self.uid.take());
        let before = if recreated {
            Sight::Nothing
        } else {
            self.sight
        };
        self.sight = self.look(node);
        if recreated {
            self.armed = true;
            self.removals.clear();
            self.unanswered = None;
        }
        let starts = !self.asks_gates(before) && self.asks_gates(self.sight);
        let comes_back = before == Sight::Absent && self.sight == Sight::Tainted;
        if recreated || starts || comes_back {
            self.paused();
        }
        if self.rule.gates.is_empty() {
            self.observe(now, State::Open);
        }
        self.armed |= self.is_stable(now);
        let kept = self.seen_since.filter(|_| !recreated).unwrap_or(now);
        self.seen_since = (self.sight == Sight::Tainted).then_some(kept);
        let goes = before == Sight::Tainted && self.sight == Sight::Absent;
        if goes {
            self.closed_since = self.closed_since.map(|_| now);
        }
        let comes = before != Sight::Tainted && self.sight == Sight::Tainted;
        let unanswered = self.unanswered.take_if(|_| comes || goes);
        match unanswered {
            Some(Action::PutBack) if comes => self.put_back(now),
            Some(Action::Remove) if goes => self.removals.push(now),
            _ => return false,
        }
        true
    }

    fn look(&self, node: Option<&NodeView>) -> Sight {
        let Some(node) = node else {
            return Sight::Nothing;
        };
        let mut selector = self.rule.node_selector.iter();
        if !selector.all(|(key, value)| node.metadata.labels.get(key) == Some(value)) {
            Sight::NotSelected
        } else if self.has_taint(node) {
            Sight::Tainted
        } else {
            Sight::Absent
        }
    }

    fn is_stable(&self, now: Instant) -> bool {
        let open = self.open_since;
        open.is_some_and(|since| now - since >= self.rule.stable_for)
    }

    /// The change that is due.
    pub(crate) fn wants(&self, now: Instant, node: &NodeView) -> Option<Action> {
        match self.sight {
            Sight::Tainted => self.may_remove(now, node).then_some(Action::Remove),
            Sight::Absent => self.may_put_back(now, node).then_some(Action::PutBack),
            Sight::Nothing | Sight::NotSelected => None,
        }
    }

    fn may_remove(&self, now: Instant, node: &NodeView) -> bool {
        let deadline = self.rule.deadline;
        let overdue = self
            .seen_since
            .is_some_and(|since| now - since >= deadline.after);
        let fails_open = overdue && deadline.action == DeadlineAction::Remove;
        let held = node.taints.iter().any(|taint| taint.key == UNREGISTERED)
            && node
                .metadata
                .labels
                .get(REGISTERED)
                .is_none_or(|value| value != "true");
        // In any time, at most a burst and one more for each refill.
        let last = self.removals.iter().rev().zip(2_usize..);
        let too_many = last.into_iter().any(|(since, with_this)| {
            let beyond = u32::try_from(with_this.saturating_sub(BURST)).unwrap();
            now - *since < REFILL * beyond
        });
        (self.is_stable(now) || fails_open) && !held && !too_many
    }

    fn may_put_back(&self, now: Instant, node: &NodeView) -> bool {
        let taint = self.rule.taint.to_taint();
        let Some((retaint, since)) = self.rule.retaint.as_ref().zip(self.closed_since) else {
            return false;
        };
        let created = node.metadata.creation_timestamp.as_ref().unwrap().0;
        let rebooted = self.boot.is_some_and(|boot| {
            since <= boot.until && boot.time.duration_since(created).as_secs() > 60
        });
        let is_due = rebooted || now - since >= retaint.after;
        let mut taints = node.taints.iter();
        let is_there = taints.any(|it| it.key == taint.key && it.effect == taint.effect);
        self.armed && is_due && !is_there
    }
}
