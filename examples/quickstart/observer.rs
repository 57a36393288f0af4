//! Prints the effects of the story, and records them for the verdict. Its sources are the objects and answers of the
//! API server, and the agent's own status and log.

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

/// The log message at the deadline of a rule.
const OVERDUE: &str = "the taint has been there for too long";

/// What was printed, and what is new.
pub(crate) struct Observer<'a> {
    scene: &'a Scene,
    status: watch::Receiver<Option<Status>>,
    logs: Logs,
    /// The rules as they were last printed.
    rules: Vec<RuleStatus>,
    /// The Node as it was last printed.
    node: Value,
    revisions: usize,
    requests: usize,
    log_lines: usize,
    /// The agent's log.
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

    /// Prints everything as it happens, until an error.
    pub(crate) async fn observe(&mut self) -> Error {
        loop {
            if let Err(error) = self.look() {
                return error;
            }
            let server = &self.scene.server;
            let known = &self.node["metadata"]["resourceVersion"];
            // A wait that ends without news is only a reason to look again.
            tokio::select! {
                _ = server.wait_for_node(NODE, |node| node["metadata"]["resourceVersion"] != *known) => {}
                _ = server.wait_for_requests(|all| answered(all).count() > self.requests) => {}
                changed = self.status.changed() => if let Err(error) = changed {
                    return error.into();
                }
            }
        }
    }

    /// The record so far. `overdue` are the rules that were overdue at the end.
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
        // The sort is stable. Of two events at the same time, the agent's log comes second, so it cannot excuse the
        // Node.
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
                // The gate has not been checked yet, or is not evaluated.
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
            // The agent has not sent the request yet.
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

/// The elements before the first that does not match.
fn answered(all: &[api::Request]) -> impl Iterator<Item = &api::Request> {
    all.iter().take_while(|request| request.status.is_some())
}
