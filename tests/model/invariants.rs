//! What must be so at every step: a small model of one rule, what a patch may change, and how often is too often.

use std::time::{Duration, Instant};

use serde_json::Value;
use untaint::boot::Boot;
use untaint::config::{DeadlineAction, Rule};
use untaint::gate::State;
use untaint::node::patch::{Action, Change};
use untaint::node::view::NodeView;

use crate::server::{REGISTERED, UNREGISTERED, id};

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
    /// Since when the gates have been open, by what was asked since the taint was last seen to come.
    open_since: Option<Instant>,
    closed_since: Option<Instant>,
    seen_since: Option<Instant>,
    /// Whether every gate has been open since the last put-back.
    armed: bool,
    removals: Vec<Instant>,
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

    pub(crate) fn removed(&mut self, now: Instant) {
        self.sight = Sight::Absent;
        self.seen_since = None;
        self.closed_since = self.closed_since.map(|_| now);
        if !self.asks_gates(self.sight) {
            self.paused();
        }
        self.took_off(now);
    }

    /// A removal took effect.
    pub(crate) fn took_off(&mut self, now: Instant) {
        self.removals.push(now);
    }

    pub(crate) fn put_back(&mut self, now: Instant) {
        self.sight = Sight::Tainted;
        self.seen_since = Some(now);
        self.armed = false;
    }

    /// It was put back, and is not there all the same.
    pub(crate) fn put_back_undone(&mut self) {
        self.sight = Sight::Absent;
        self.armed = false;
    }

    /// The Node is not watched: what a put-back waits for counts from when it is.
    pub(crate) fn unwatched(&mut self, now: Instant) {
        self.closed_since = self.closed_since.map(|_| now);
    }

    pub(crate) fn step(&mut self, now: Instant, node: Option<&NodeView>) {
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
        }
        let starts = !self.asks_gates(before) && self.asks_gates(self.sight);
        let comes = before == Sight::Absent && self.sight == Sight::Tainted;
        if recreated || starts || comes {
            self.paused();
        }
        if self.rule.gates.is_empty() {
            self.observe(now, State::Open);
        }
        self.armed |= self.is_stable(now);
        let kept = self.seen_since.filter(|_| !recreated).unwrap_or(now);
        self.seen_since = (self.sight == Sight::Tainted).then_some(kept);
        if before == Sight::Tainted && self.sight == Sight::Absent {
            self.closed_since = self.closed_since.map(|_| now);
        }
    }

    fn look(&self, node: Option<&NodeView>) -> Sight {
        let Some(node) = node else {
            return Sight::Nothing;
        };
        let mut selector = self.rule.node_selector.iter();
        if !selector.all(|(key, value)| node.metadata.labels.get(key) == Some(value)) {
            Sight::NotSelected
        } else if node
            .taints
            .iter()
            .any(|taint| self.rule.taint.matches(taint))
        {
            Sight::Tainted
        } else {
            Sight::Absent
        }
    }

    fn is_stable(&self, now: Instant) -> bool {
        let open = self.open_since;
        open.is_some_and(|since| now - since >= self.rule.stable_for)
    }

    /// What is to be written now.
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
        // In any time, no more than a burst and what comes in by then.
        let last = self.removals.iter().rev().zip(2_usize..);
        let too_many = last.into_iter().any(|(since, with_this)| {
            let beyond = u32::try_from(with_this.saturating_sub(BURST)).unwrap();
            now - *since < REFILL * beyond
        });
        (self.is_stable(now) || fails_open) && !held && !too_many
    }

    fn may_put_back(&self, now: Instant, node: &NodeView) -> bool {
        let taint = self.rule.taint.to_taint();
        let Some((retaint, since)) = self.rule.retaint.zip(self.closed_since) else {
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

/// Panics unless the patch has done to the Node what the change says, to taints of the `rules` alone.
pub(crate) fn check_effect(change: &Change, rules: &[Rule], before: &Value, after: &Value) {
    let taints = |node: &Value| {
        node["spec"]["taints"]
            .as_array()
            .cloned()
            .unwrap_or_default()
    };
    let named = |taint: &Value| {
        let mut named = change.taints.iter();
        named.any(|named| (named.key.clone(), named.effect.clone()) == id(taint))
    };
    let (mine, others): (Vec<_>, Vec<_>) = taints(before).into_iter().partition(named);
    let (left, others_after): (Vec<_>, Vec<_>) = taints(after).into_iter().partition(named);
    let bytes = |taints: &[Value]| serde_json::to_string(taints).unwrap();
    assert_eq!(
        bytes(&others),
        bytes(&others_after),
        "a foreign taint: {change:?}"
    );
    let (gone, came) = match change.action {
        Action::Remove => (mine, left),
        Action::PutBack => (left, mine),
    };
    assert_eq!(
        (gone.len(), came.len()),
        (change.taints.len(), 0),
        "{change:?}"
    );
    for taint in gone {
        let taint = serde_json::from_value(taint).unwrap();
        let is_ours = rules.iter().any(|rule| rule.taint.matches(&taint));
        assert!(is_ours, "no rule is about {taint:?}: {change:?}");
    }
    let without_taints = |node: &Value| {
        let mut node = node.clone();
        node["spec"].as_object_mut().unwrap().remove("taints");
        node["metadata"]
            .as_object_mut()
            .unwrap()
            .remove("resourceVersion");
        node
    };
    assert_eq!(without_taints(before), without_taints(after));
    assert_eq!(before["metadata"]["uid"], change.uid.as_str());
}

/// The requests since somebody else last did something that makes a new attempt sensible.
#[derive(Debug, Default)]
pub(crate) struct Traffic {
    since: Option<Instant>,
    patches: u32,
    reads: u32,
}

impl Traffic {
    pub(crate) fn others_act(&mut self) {
        *self = Self::default();
    }

    pub(crate) fn patch(&mut self, now: Instant) {
        self.patches += 1;
        self.check(now);
    }

    pub(crate) fn read(&mut self, now: Instant) {
        self.reads += 1;
        self.check(now);
    }

    /// The waits double from 20 ms to 5 s, of which half is certain: 9 of them, and then one in 2.5 s. Those after a
    /// refusal double from 1 s to 1 min, for each of the four taints that rules can be about: 7, and then one a minute.
    fn check(&mut self, now: Instant) {
        let elapsed = now - *self.since.get_or_insert(now);
        let every = |millis| u32::try_from(elapsed.as_millis() / millis).unwrap();
        let retries = 10 + every(2_500);
        let denials = 4 * (7 + every(60_000));
        assert!(
            self.patches <= retries + denials && self.reads <= retries + self.patches,
            "too many requests in {elapsed:?}: {self:?}"
        );
    }
}
