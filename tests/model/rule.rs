//! A rule at work without its I/O: what `src/agent/rule.rs` does around the decision, held to the reference.

use std::time::{Duration, Instant};

use untaint::boot::Boot;
use untaint::config::{Check, Deadline, DeadlineAction, FileCheck, Probe, Retaint, Rule, Schedule};
use untaint::gate::State;
use untaint::node::patch::{Action, Change};
use untaint::node::view::NodeView;
use untaint::rule::{Decision, Occurrence, RuleState};
use untaint::taint::{Effect, TaintMatcher};

use crate::events::Options;
use crate::invariants::Reference;

/// From the start of a gate to what it says.
const PROBE: Duration = Duration::from_millis(100);

#[derive(Debug, Clone, Copy, PartialEq)]
enum Gates {
    AtRest,
    Asked { round: u64, at: Instant },
    Evaluated { round: u64 },
}

pub(crate) struct RuleRunner {
    pub(crate) slot: usize,
    pub(crate) state: RuleState,
    pub(crate) reference: Reference,
    gates: Gates,
    pub(crate) unanswered: Option<Action>,
}

impl RuleRunner {
    pub(crate) fn new(slot: usize, rule: Rule, boot: Option<Boot>) -> Self {
        Self {
            slot,
            state: RuleState::new(rule.clone(), boot),
            reference: Reference::new(rule, boot),
            gates: Gates::AtRest,
            unanswered: None,
        }
    }

    /// When the gates will have been evaluated.
    pub(crate) fn reports_at(&self) -> Option<Instant> {
        match self.gates {
            Gates::Asked { at, .. } => Some(at),
            _ => None,
        }
    }

    fn observe(&mut self, now: Instant, found: State) {
        let together = self.together(found);
        self.state.observe(now, together);
        self.reference.observe(now, together);
    }

    fn together(&self, found: State) -> State {
        let round = self.state.round();
        if self.state.rule().gates.is_empty() {
            State::Open
        } else if self.gates == (Gates::Evaluated { round }) {
            found
        } else {
            State::Unknown
        }
    }

    /// `again`: gates that have reported before do, too.
    pub(crate) fn take_reports(&mut self, now: Instant, found: State, again: bool) {
        match self.gates {
            Gates::Asked { round, at } if at <= now => self.gates = Gates::Evaluated { round },
            Gates::Evaluated { .. } if again => {}
            _ => return,
        }
        self.observe(now, found);
    }

    fn run_gates(&mut self, now: Instant, found: State) {
        let round = self.state.round();
        match self.gates {
            Gates::Asked { round: asked, .. } | Gates::Evaluated { round: asked }
                if asked == round => {}
            _ => {
                self.gates = Gates::Asked {
                    round,
                    at: now + PROBE,
                }
            }
        }
        self.observe(now, found);
    }

    pub(crate) fn reconfigure(&mut self, now: Instant, rule: Rule, found: State) {
        if *self.state.rule() == rule {
            return;
        }
        if self.state.rule().gates != rule.gates {
            self.gates = Gates::AtRest;
        }
        let together = if rule.gates.is_empty() {
            State::Open
        } else {
            self.together(found)
        };
        self.state.reconfigure(now, rule.clone(), together);
        self.reference.reconfigure(now, rule, together);
    }

    /// Decides anew, and must come to what the reference says.
    pub(crate) fn step(
        &mut self,
        now: Instant,
        node: Option<&NodeView>,
        watching: bool,
        found: State,
    ) {
        if self.state.runs_gates() {
            self.run_gates(now, found);
        }
        if !watching {
            self.state.unwatched(now);
            self.reference.unwatched(now);
        }
        let occurrence = self.state.step(now, node);
        self.reference.step(now, node);
        let due = match self.state.decision() {
            Decision::Ready => Some(Action::Remove),
            Decision::Lapsed => Some(Action::PutBack),
            _ => None,
        };
        let expected = node.and_then(|node| self.reference.wants(now, node));
        assert_eq!(due, expected, "{:?} {:?}", self.state, self.reference);
        match occurrence {
            Some(Occurrence::Tainted) if self.unanswered.take() == Some(Action::PutBack) => {
                self.state.put_back(now);
                self.reference.put_back(now);
            }
            Some(Occurrence::RemovedByOther { .. })
                if self.unanswered.take() == Some(Action::Remove) =>
            {
                self.state.removed_without_answer(now);
                self.reference.took_off(now);
            }
            _ => {}
        }
        if self.state.runs_gates() {
            self.run_gates(now, found);
        } else {
            self.gates = Gates::AtRest;
        }
    }

    pub(crate) fn is_in(&self, change: Option<&Change>) -> bool {
        change.is_some_and(|change| {
            let decision = self.state.decision();
            let is_possible = match change.action {
                Action::Remove => decision.is_tainted(),
                Action::PutBack => decision.is_absent(),
            };
            let mut taints = change.taints.iter();
            is_possible && taints.any(|taint| self.state.rule().taint.matches(taint))
        })
    }

    /// The server took the change, and this is the Node afterwards.
    pub(crate) fn changed(&mut self, now: Instant, change: &Change, node: &NodeView) {
        if !self.is_in(Some(change)) {
            return;
        }
        self.unanswered = None;
        match change.action {
            Action::Remove => {
                self.state.removed(now);
                self.reference.removed(now);
            }
            Action::PutBack if node.has(&self.state.rule().taint) => {
                self.state.put_back(now);
                self.reference.put_back(now);
            }
            Action::PutBack => {
                self.state.put_back_undone();
                self.reference.put_back_undone();
            }
        }
    }

    /// This is the Node after a change whose outcome was not known.
    pub(crate) fn read(&mut self, node: &NodeView) {
        let has_taint = node.has(&self.state.rule().taint);
        self.unanswered
            .take_if(|action| (*action == Action::Remove) == has_taint);
    }
}

/// The rule of this slot: any value and effect, one value and effect, and no value on some Nodes only.
pub(crate) fn rule(slot: usize, options: Options) -> Rule {
    let (key, value, effect) = match slot {
        0 if options.another_taint => ("t/other", None, None),
        0 => ("t/one", None, None),
        1 => ("t/two", Some("v"), Some(Effect::NoSchedule)),
        _ => ("t/three", Some(""), None),
    };
    let taint = TaintMatcher {
        key: key.into(),
        value: value.map(Into::into),
        effect,
    };
    let check = Check::File(FileCheck {
        path: "/ready".into(),
        newer_than_boot: false,
    });
    let gate = Probe {
        name: "ready".into(),
        check,
        schedule: Schedule::default(),
    };
    let gates = if options.gated {
        vec![gate.into()]
    } else {
        Vec::new()
    };
    let retaint = options.retaint && options.gated && effect == Some(Effect::NoSchedule);
    let action = if options.fails_open && !retaint {
        DeadlineAction::Remove
    } else {
        DeadlineAction::Keep
    };
    let node_selector = [("pool".to_owned(), "a".to_owned())];
    Rule {
        node_selector: node_selector.into_iter().filter(|_| slot == 2).collect(),
        stable_for: Duration::from_secs(options.stable_for),
        deadline: Deadline {
            after: Duration::from_secs(options.deadline),
            action,
        },
        retaint: retaint.then(Retaint::default),
        dry_run: options.dry_run,
        ..Rule::new(format!("rule-{slot}"), taint, gates)
    }
}
