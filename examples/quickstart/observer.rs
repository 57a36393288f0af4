//! Tells what comes of the story, from what the API server has stored and answered and from the agent's own status and
//! log, and keeps it for the verdict.

use std::time::Instant;

use anyhow::{Error, Result};
use serde_json::Value;
use testkit::api::{self, Revision};
use testkit::taints;
use tokio::sync::watch;
use untaint::gate::State;
use untaint::gate::run::GateStatus;
use untaint::status::{RuleStatus, Status};

use crate::logs::Logs;
use crate::rules::{NODE, rule_of};
use crate::scene::Scene;
use crate::timeline::{Line, Tone, Who};
use crate::verdict::{Event, Record, Request, What};
use crate::wording::{describe, patched_rule, path, warning};

/// What the agent logs at a rule's deadline.
const OVERDUE: &str = "the taint has been there for too long";

/// What has been told, and what is new.
pub(crate) struct Observer<'a> {
    scene: &'a Scene,
    status: watch::Receiver<Option<Status>>,
    logs: Logs,
    /// The rules as last told of.
    rules: Vec<RuleStatus>,
    /// The Node as last told of.
    node: Value,
    revisions: usize,
    requests: usize,
    log_lines: usize,
    /// What the agent has said.
    said: Vec<Event>,
    lines: Vec<Line>,
}

impl<'a> Observer<'a> {
    pub(crate) fn new(
        scene: &'a Scene,
        status: watch::Receiver<Option<Status>>,
        logs: Logs,
    ) -> Self {
        Self {
            scene,
            status,
            logs,
            rules: Vec::new(),
            node: Value::Null,
            revisions: 0,
            requests: 0,
            log_lines: 0,
            said: Vec::new(),
            lines: Vec::new(),
        }
    }

    /// Tells of everything as it happens, until that fails.
    pub(crate) async fn observe(&mut self) -> Error {
        loop {
            if let Err(error) = self.look() {
                return error;
            }
            let server = &self.scene.server;
            let known = &self.node["metadata"]["resourceVersion"];
            // Those that end without anything new are only a reason to look again.
            tokio::select! {
                _ = server.wait_for_node(NODE, |node| node["metadata"]["resourceVersion"] != *known) => {}
                _ = server.wait_for_requests(|all| answered(all).count() > self.requests) => {}
                changed = self.status.changed() => if let Err(error) = changed {
                    return error.into();
                }
            }
        }
    }

    /// Everything up to now. `overdue`: the rules that the agent called so in the end.
    pub(crate) fn into_record(mut self, overdue: Vec<String>) -> Result<Record> {
        self.look()?;
        let timeline = &self.scene.timeline;
        let stored = self.scene.server.revisions(NODE).into_iter();
        let stored = stored.map(|Revision { at, object }| Event {
            at: timeline.since_start(at),
            what: What::Stored(taints(&object)),
        });
        let requests = self.scene.server.requests().into_iter();
        let requests = requests.map(|request| Request {
            verb: request.verb,
            path: path(&request).into(),
            code: request.status,
            connection: request.connection,
        });
        let mut events: Vec<_> = self.scene.facts();
        events.extend(stored);
        events.extend(self.said);
        // Stable: of two at the same time, what the agent said comes second and cannot excuse the Node.
        events.sort_by_key(|event| event.at);
        Ok(Record {
            events,
            requests: requests.collect(),
            overdue,
        })
    }

    fn look(&mut self) -> Result<()> {
        self.look_at_node();
        self.look_at_requests();
        let status = self.status.borrow_and_update().clone();
        let rules = status.map_or_else(Vec::new, |status| status.rules);
        for (index, rule) in rules.iter().enumerate() {
            let before = self.rules.get(index).cloned();
            self.look_at_gates(rule, before.as_ref());
            self.look_at_decision(rule, before.as_ref());
        }
        self.rules = rules;
        self.look_at_log();
        let mut lines = std::mem::take(&mut self.lines);
        lines.sort_by_key(|line| line.at);
        for line in &lines {
            self.scene.timeline.print(line)?;
        }
        Ok(())
    }

    fn look_at_node(&mut self) {
        for Revision { at, object } in self.scene.server.revisions(NODE).split_off(self.revisions) {
            self.revisions += 1;
            let (before, after) = (taints(&self.node), taints(&object));
            let left = |from: &[String], but: &[String]| -> Vec<String> {
                let left = from.iter().filter(|taint| !but.contains(taint));
                left.cloned().collect()
            };
            for taint in left(&after, &before) {
                self.tell_of_taint(at, &taint, "the Node has the taint", Tone::Plain);
            }
            for taint in left(&before, &after) {
                self.tell_of_taint(at, &taint, "the Node no longer has the taint", Tone::Good);
            }
            self.node = object;
        }
    }

    fn tell_of_taint(&mut self, at: Instant, taint: &str, what: &str, tone: Tone) {
        self.lines.push(Line {
            at,
            who: Who::ApiServer,
            what: format!("{what} {taint}"),
            rule: rule_of(taint),
            tone,
        });
    }

    fn look_at_requests(&mut self) {
        let all = self.scene.server.requests();
        for request in answered(&all).skip(self.requests) {
            self.requests += 1;
            let code = request.status.unwrap_or_default();
            let operations: Vec<Value> = serde_json::from_str(&request.body).unwrap_or_default();
            let what = describe(request, &operations);
            self.lines.push(Line {
                at: request.at,
                who: Who::ApiServer,
                rule: patched_rule(&operations),
                what: format!("answers {code} to {what}"),
                tone: if code < 400 { Tone::Plain } else { Tone::Bad },
            });
        }
    }

    fn look_at_gates(&mut self, rule: &RuleStatus, before: Option<&RuleStatus>) {
        let at = Instant::now();
        for (index, gate) in rule.gates.iter().enumerate() {
            let before = before.and_then(|rule| rule.gates.get(index));
            let same =
                |before: &GateStatus| before.state == gate.state && before.message == gate.message;
            if before.is_some_and(same) {
                continue;
            }
            self.said.push(Event {
                at: self.scene.timeline.since_start(at),
                what: What::Found {
                    rule: rule.name.clone(),
                    gate: gate.name.clone(),
                    state: gate.state,
                },
            });
            let tone = match gate.state {
                State::Open => Tone::Good,
                State::Closed => Tone::Waiting,
                // It has not been asked yet, or is not to be.
                State::Unknown => continue,
            };
            let (name, state) = (&gate.name, gate.state.as_str());
            let message = self.scene.shorten(&gate.message);
            self.tell_of_rule(at, rule, format!("gate {name} is {state}: {message}"), tone);
        }
    }

    fn look_at_decision(&mut self, rule: &RuleStatus, before: Option<&RuleStatus>) {
        if before.is_some_and(|before| before.decision == rule.decision) {
            return;
        }
        let (what, tone) = match rule.decision {
            // It has not asked for it yet.
            "no-node" => return,
            "waiting" => {
                let not_open = rule.gates.iter().filter(|gate| gate.state != State::Open);
                let not_open: Vec<_> = not_open.map(|gate| gate.name.as_str()).collect();
                let what = format!("sees the taint and waits for {}", not_open.join(" and "));
                (what, Tone::Waiting)
            }
            "ready" => ("is ready: every gate is open".into(), Tone::Plain),
            "absent" => ("rests until the taint comes back".into(), Tone::Plain),
            other => (other.into(), Tone::Plain),
        };
        self.tell_of_rule(Instant::now(), rule, what, tone);
    }

    fn tell_of_rule(&mut self, at: Instant, rule: &RuleStatus, what: String, tone: Tone) {
        self.lines.push(Line {
            at,
            who: Who::Untaint,
            rule: Some(rule.name.clone()),
            what,
            tone,
        });
    }

    fn look_at_log(&mut self) {
        for line in self.logs.after(self.log_lines) {
            self.log_lines += 1;
            if line.text("message") == OVERDUE {
                self.said.push(Event {
                    at: self.scene.timeline.since_start(line.at),
                    what: What::Overdue(line.text("rule").into()),
                });
            }
            if ["WARN", "ERROR"].contains(&line.text("level")) {
                self.lines.push(Line {
                    at: line.at,
                    who: Who::Untaint,
                    rule: Some(line.text("rule").into()).filter(|rule: &String| !rule.is_empty()),
                    what: self.scene.shorten(&warning(&line)),
                    tone: Tone::Bad,
                });
            }
        }
    }
}

/// Up to the first that is not.
fn answered(all: &[api::Request]) -> impl Iterator<Item = &api::Request> {
    all.iter().take_while(|request| request.status.is_some())
}
