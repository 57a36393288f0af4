//! The agent without its I/O: what `src/agent` does around the pure parts, with every step held to the reference.

use std::time::Instant;

use untaint::api::ApiError;
use untaint::boot::Boot;
use untaint::config::Rule;
use untaint::gate::State;
use untaint::node::patch::{Action, Change, Wanted};
use untaint::node::view::{Latest, NodeView};
use untaint::node::writes::{Request, Writes};
use untaint::node::{Answer, Next};

use crate::events::{Options, SLOTS};
use crate::invariants::Traffic;
use crate::rule::{RuleRunner, rule};
use crate::server::WatchUpdate;

pub(crate) struct Agent {
    rules: Vec<RuleRunner>,
    latest: Latest,
    writes: Writes,
    write_at: Option<Instant>,
    pub(crate) pending: Option<Request>,
    /// Of the Node that a change may have changed without an answer, until it is read.
    unread: Option<String>,
    pub(crate) traffic: Traffic,
    pub(crate) watching: bool,
    /// What the gates of the rules find when they are asked.
    pub(crate) found: [State; SLOTS],
}

impl Agent {
    pub(crate) fn new(now: Instant, rules: &[Option<Options>; SLOTS], boot: Option<Boot>) -> Self {
        let mut agent = Self {
            rules: Vec::new(),
            latest: Latest::default(),
            writes: Writes::default(),
            write_at: None,
            pending: None,
            unread: None,
            traffic: Traffic::default(),
            watching: true,
            found: [State::Closed; SLOTS],
        };
        agent.follow(now, rules, boot);
        agent
    }

    pub(crate) fn configured(&self) -> Vec<Rule> {
        self.rules
            .iter()
            .map(|rule| rule.state.rule().clone())
            .collect()
    }

    /// Returns the change that was under way, if nobody wants it any more.
    pub(crate) fn reload(
        &mut self,
        now: Instant,
        rules: &[Option<Options>; SLOTS],
    ) -> Option<Change> {
        self.follow(now, rules, None);
        self.writes.forget_denials();
        let wanted = wanted(&self.rules);
        let unwanted = |request: &mut Request| matches!(request, Request::Patch(change) if !wanted.includes(change));
        let Some(Request::Patch(change)) = self.pending.take_if(unwanted) else {
            return None;
        };
        self.writes.canceled();
        self.unread = Some(change.uid.clone());
        self.unanswered(&change);
        Some(change)
    }

    fn follow(&mut self, now: Instant, rules: &[Option<Options>; SLOTS], boot: Option<Boot>) {
        let mut known = std::mem::take(&mut self.rules);
        for (slot, options) in rules.iter().enumerate() {
            let Some(options) = options else { continue };
            let rule = rule(slot, *options);
            let at = known
                .iter()
                .position(|known| known.state.rule().is_same(&rule));
            self.rules.push(if let Some(at) = at {
                let mut known = known.swap_remove(at);
                known.reconfigure(now, rule, self.found[slot]);
                known
            } else {
                RuleRunner::new(slot, rule, boot)
            });
        }
    }

    pub(crate) fn observe_watch(&mut self, update: WatchUpdate) {
        self.traffic.others_act();
        match update {
            WatchUpdate::Apply(node) => self.observe_node(*node, Latest::observe),
            WatchUpdate::Delete(uid) => self.node_deleted(&uid),
        }
    }

    fn observe_node(&mut self, node: NodeView, record: fn(&mut Latest, NodeView) -> bool) {
        let known = self.latest.get();
        if known.is_some_and(|known| known.metadata.uid != node.metadata.uid) {
            self.writes = Writes::default();
        }
        record(&mut self.latest, node);
    }

    fn node_deleted(&mut self, uid: &str) {
        if self.latest.deleted(uid) {
            self.writes = Writes::default();
        }
    }

    pub(crate) fn knows_without(&self, key: &str) -> bool {
        let node = self.latest.get();
        node.is_some_and(|node| node.taints.iter().all(|taint| taint.key != key))
    }

    pub(crate) fn paused(&mut self, now: Instant) {
        for rule in &mut self.rules {
            rule.state.start_afresh(now);
            rule.reference.paused();
        }
    }

    /// The gates report what they find now.
    pub(crate) fn gates_report(&mut self, now: Instant) {
        for rule in &mut self.rules {
            rule.apply_reports(now, self.found[rule.slot], true);
        }
    }

    /// One turn of the loop. Returns when the next one is due by time alone.
    pub(crate) fn turn(&mut self, now: Instant) -> Option<Instant> {
        let change = self.pending.as_ref().and_then(Request::change);
        for rule in &mut self.rules {
            rule.apply_reports(now, self.found[rule.slot], false);
            if !rule.is_changed_by(change) {
                let node = self.latest.get();
                rule.step(now, node, self.watching, self.found[rule.slot]);
            }
        }
        if self.pending.is_none() {
            self.pending = self.next_request(now);
        }
        let change = self.pending.as_ref().and_then(Request::change);
        let rules = self.rules.iter().filter(|rule| !rule.is_changed_by(change));
        let times = rules.filter_map(|rule| rule.state.wake_at());
        let requests = self.write_at.filter(|_| self.pending.is_none());
        let reports = self.rules.iter().filter_map(RuleRunner::reports_at);
        times.chain(requests).chain(reports).min()
    }

    fn next_request(&mut self, now: Instant) -> Option<Request> {
        self.write_at = None;
        let node = self.latest.get()?;
        match self.writes.next(now, node, &wanted(&self.rules)) {
            Next::Wait(until) => {
                self.write_at = until;
                None
            }
            Next::Send(Request::Get(uid)) => {
                self.traffic.read(now);
                assert_eq!(uid, node.metadata.uid);
                Some(Request::Get(uid))
            }
            Next::Send(Request::Patch(change)) => {
                self.traffic.patch(now);
                assert_eq!(change.uid, node.metadata.uid);
                assert_ne!(self.unread.as_ref(), Some(&change.uid), "read it first");
                for taint in &change.taints {
                    let wants = |rule: &RuleRunner| {
                        let configured = rule.state.rule();
                        let is_it = match change.action {
                            Action::Remove => configured.taint.matches(taint),
                            Action::PutBack => configured.taint.to_taint() == *taint,
                        };
                        let wants = rule.reference.wants(now, node) == Some(change.action);
                        is_it && wants && !configured.dry_run
                    };
                    assert!(self.rules.iter().any(wants), "nobody may write {change:?}");
                }
                Some(Request::Patch(change))
            }
        }
    }

    pub(crate) fn answered(&mut self, now: Instant, request: &Request, answer: Answer) {
        let uid = match request {
            Request::Patch(change) => {
                self.writes.patched(now, change, &answer);
                match &answer {
                    Ok(node) => {
                        self.traffic.others_act();
                        for rule in &mut self.rules {
                            rule.accepted(now, change, node);
                        }
                    }
                    Err(error) if error.leaves_outcome_unknown() => {
                        self.unread = Some(change.uid.clone());
                        self.unanswered(change);
                    }
                    Err(_) => {}
                }
                &change.uid
            }
            Request::Get(uid) => {
                self.writes.got(now, &wanted(&self.rules), &answer);
                let error = answer.as_ref().err();
                self.unread
                    .take_if(|_| error.is_none_or(ApiError::is_denial));
                for rule in &mut self.rules {
                    if let Ok(node) = &answer {
                        rule.read(node);
                    }
                }
                uid
            }
        };
        let known = self.latest.get().map(|known| &known.metadata.uid);
        if let Ok(node) = answer
            && known.is_some_and(|known| known == uid)
        {
            self.observe_node(node, Latest::answered);
        }
    }

    fn unanswered(&mut self, change: &Change) {
        for rule in &mut self.rules {
            rule.unanswered(change);
        }
    }
}

fn wanted(rules: &[RuleRunner]) -> Wanted<'_> {
    let mut wanted = Wanted::default();
    for rule in rules {
        rule.state.add_wanted(&mut wanted);
    }
    wanted
}
