//! A rule with simulated gates. Every step of its state is compared with the reference.

use std::time::{Duration, Instant};

use untaint::boot::Boot;
use untaint::config::{
    Deadline, DeadlineAction, FileCheck, Probe, ProbeHandler, Retaint, Rule, Schedule,
};
use untaint::gate::State;
use untaint::node::patch::{Action, Change};
use untaint::node::view::NodeView;
use untaint::rule::{RuleEvent, RuleState};
use untaint::taint::{Effect, TaintMatcher};

use crate::events::Options;
use crate::reference::Reference;

/// From the start of a gate to its report.
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
}

impl RuleRunner {
    pub(crate) fn new(slot: usize, rule: Rule, boot: Option<Boot>) -> Self {
        Self {
            slot,
            state: RuleState::new(rule.clone(), boot),
            reference: Reference::new(rule, boot),
            gates: Gates::AtRest,
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
    pub(crate) fn apply_reports(&mut self, now: Instant, found: State, again: bool) {
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

    /// Decides again. The reference must decide the same.
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
        let event = self.state.step(now, node);
        let is_own = self.reference.step(now, node);
        let expected = node.and_then(|node| self.reference.wants(now, node));
        let is_reported = matches!(
            event,
            Some(RuleEvent::PutBack | RuleEvent::RemovedUnanswered { .. })
        );
        assert_eq!(is_reported, is_own, "{event:?} {:?}", self.reference);
        // After its own put-back, the rule decides about the taint in the next step.
        let expected = expected.filter(|_| event != Some(RuleEvent::PutBack));
        self.assert_due(expected);
        if self.state.runs_gates() {
            self.run_gates(now, found);
        } else {
            self.gates = Gates::AtRest;
        }
    }

    fn assert_due(&self, expected: Option<Action>) {
        let (state, reference) = (&self.state, &self.reference);
        assert_eq!(state.due(), expected, "{state:?} {reference:?}");
        let is_written = !state.rule().dry_run;
        let expected = expected.filter(|_| is_written);
        assert_eq!(state.wants(), expected, "{state:?} {reference:?}");
    }

    pub(crate) fn is_changed_by(&self, change: Option<&Change>) -> bool {
        let is_own = |change| {
            let is_own = self.state.is_changed_by(change);
            assert_eq!(is_own, self.reference.owns(change), "{change:?}");
            is_own
        };
        change.is_some_and(is_own)
    }

    /// The server accepted the change, and this is the Node afterwards.
    pub(crate) fn accepted(&mut self, now: Instant, change: &Change, node: &NodeView) {
        let events = self.state.accepted(now, change, node);
        let owned = self.reference.accepted(now, change, node);
        assert_eq!(events.len(), owned, "{events:?}");
        if owned > 0 {
            self.assert_due(None);
        }
    }

    pub(crate) fn unanswered(&mut self, change: &Change) {
        self.state.unanswered(change);
        self.reference.unanswered(change);
    }

    /// This is the Node after a change whose outcome was not known.
    pub(crate) fn read(&mut self, node: &NodeView) {
        self.state.read(node);
        self.reference.read(node);
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
    let handler = ProbeHandler::File(FileCheck::new("/ready"));
    let gate = Probe {
        name: "ready".into(),
        handler,
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
