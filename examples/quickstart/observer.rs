//! Tells what comes of the story, from what the API server has stored and answered and from the agent's own status, and
//! keeps it for the verdict.

use std::time::Instant;

use anyhow::Result;
use serde_json::Value;
use testkit::api::{self, Revision};
use testkit::taints;
use tokio::sync::watch;
use untaint::status::{GateStatus, RuleStatus, Status};

use crate::scene::{NODE, Scene};
use crate::timeline::{Line, Tone, Who};
use crate::verdict::{Event, Record, Request, What, verb};

/// What has been told, and what is new.
pub(crate) struct Observer<'a> {
    scene: &'a Scene,
    status: watch::Receiver<Option<Status>>,
    /// The rule as last told of.
    rule: Option<RuleStatus>,
    /// The Node as last told of.
    node: Value,
    revisions: usize,
    requests: usize,
    gates: Vec<Event>,
    lines: Vec<Line>,
}

impl<'a> Observer<'a> {
    pub(crate) fn new(scene: &'a Scene, status: watch::Receiver<Option<Status>>) -> Self {
        Self {
            scene,
            status,
            rule: None,
            node: Value::Null,
            revisions: 0,
            requests: 0,
            gates: Vec::new(),
            lines: Vec::new(),
        }
    }

    /// Tells of everything as it happens, until standard output fails.
    pub(crate) async fn observe(&mut self) -> Result<()> {
        loop {
            self.look()?;
            let server = &self.scene.server;
            let known = &self.node["metadata"]["resourceVersion"];
            // Those that end without anything new are only a reason to look again.
            tokio::select! {
                _ = server.wait_for_node(NODE, |node| node["metadata"]["resourceVersion"] != *known) => {}
                _ = server.wait_for_requests(|all| answered(all).count() > self.requests) => {}
                changed = self.status.changed() => changed?,
            }
        }
    }

    /// Everything up to now.
    pub(crate) fn into_record(mut self) -> Result<Record> {
        self.look()?;
        let timeline = &self.scene.timeline;
        let stored = self.scene.server.revisions(NODE).into_iter();
        let stored = stored.map(|Revision { at, object: node }| Event {
            at: timeline.since_start(at),
            what: What::Stored(taints(&node)),
        });
        let requests = self.scene.server.requests().into_iter();
        let requests = requests.map(|request| Request {
            verb: request.verb,
            code: request.status,
            connection: request.connection,
        });
        let mut events: Vec<_> = stored.chain(self.gates).collect();
        // Stable: of two at the same time, the gate comes second and cannot excuse the Node.
        events.sort_by_key(|event| event.at);
        Ok(Record {
            events,
            requests: requests.collect(),
        })
    }

    fn look(&mut self) -> Result<()> {
        self.look_at_node();
        self.look_at_requests();
        let status = self.status.borrow_and_update().clone();
        // There is one.
        for rule in status.into_iter().flat_map(|status| status.rules) {
            self.look_at_gates(&rule);
            self.look_at_decision(&rule);
            self.rule = Some(rule);
        }
        let mut lines = std::mem::take(&mut self.lines);
        lines.sort_by_key(|line| line.at);
        for line in &lines {
            self.scene.timeline.print(line)?;
        }
        Ok(())
    }

    fn look_at_node(&mut self) {
        for Revision { at, object: node } in
            self.scene.server.revisions(NODE).split_off(self.revisions)
        {
            self.revisions += 1;
            let (before, after) = (taints(&self.node), taints(&node));
            let signed = |sign, from: &[String], but: &[String]| -> Vec<_> {
                let left = from.iter().filter(|taint| !but.contains(taint));
                left.map(|taint| format!("{sign} {taint}")).collect()
            };
            let mut changes = signed('+', &after, &before);
            let gone = signed('-', &before, &after);
            let tone = if gone.is_empty() {
                Tone::Plain
            } else {
                Tone::Good
            };
            changes.extend(gone);
            let version = node["metadata"]["resourceVersion"]
                .as_str()
                .unwrap_or_default();
            self.lines.push(Line {
                at,
                who: Who::ApiServer,
                subject: format!("Node version {version}"),
                detail: changes.join("  "),
                tone,
            });
            self.node = node;
        }
    }

    fn look_at_requests(&mut self) {
        let all = self.scene.server.requests();
        for request in answered(&all).skip(self.requests) {
            self.requests += 1;
            let code = request.status.unwrap_or_default();
            self.lines.push(Line {
                at: request.at,
                who: Who::ApiServer,
                subject: format!("{} {code}", verb(request.verb)),
                detail: describe(request),
                tone: if code < 400 { Tone::Plain } else { Tone::Bad },
            });
        }
    }

    fn look_at_gates(&mut self, rule: &RuleStatus) {
        let at = Instant::now();
        for (index, gate) in rule.gates.iter().enumerate() {
            let before = self.rule.as_ref().and_then(|rule| rule.gates.get(index));
            let same =
                |before: &GateStatus| before.state == gate.state && before.message == gate.message;
            if before.is_some_and(same) {
                continue;
            }
            self.gates.push(Event {
                at: self.scene.timeline.since_start(at),
                what: What::Gate(gate.name.clone(), gate.state),
            });
            self.lines.push(Line {
                at,
                who: Who::Agent,
                subject: format!("gate {}", gate.name),
                detail: format!("{}: {}", gate.state, self.scene.shorten(&gate.message)),
                tone: match gate.state {
                    "open" => Tone::Good,
                    "closed" => Tone::Waiting,
                    _ => Tone::Faint,
                },
            });
        }
    }

    fn look_at_decision(&mut self, rule: &RuleStatus) {
        if self
            .rule
            .as_ref()
            .is_some_and(|before| before.decision == rule.decision)
        {
            return;
        }
        let not_open = rule.gates.iter().filter(|gate| gate.state != "open");
        let not_open: Vec<_> = not_open.map(|gate| gate.name.as_str()).collect();
        let detail = match rule.decision {
            "no-node" => "no-node: the Node has not been seen".into(),
            "absent" => "absent: the Node does not have the taint".into(),
            decision if not_open.is_empty() => format!("{decision}: every gate is open"),
            decision => format!("{decision}: {} not open", not_open.join(" and ")),
        };
        self.lines.push(Line {
            at: Instant::now(),
            who: Who::Agent,
            subject: format!("rule {}", rule.name),
            detail,
            tone: if rule.decision == "waiting" {
                Tone::Waiting
            } else {
                Tone::Plain
            },
        });
    }
}

/// Up to the first that is not.
fn answered(all: &[api::Request]) -> impl Iterator<Item = &api::Request> {
    all.iter().take_while(|request| request.status.is_some())
}

/// The operations of a JSON Patch; of other requests, the path and what selects and starts a watch.
fn describe(request: &api::Request) -> String {
    let operations: Vec<Value> = serde_json::from_str(&request.body).unwrap_or_default();
    let field = |operation: &Value, name| operation[name].as_str().unwrap_or_default().to_owned();
    let operations: Vec<_> = operations
        .iter()
        .map(|operation| format!("{} {}", field(operation, "op"), field(operation, "path")))
        .collect();
    if !operations.is_empty() {
        return operations.join(", ");
    }
    let telling = ["/", "fieldSelector=", "sendInitialEvents="];
    let parts = request.uri.split(['?', '&']);
    let parts: Vec<_> = parts
        .filter(|part| telling.iter().any(|start| part.starts_with(start)))
        .collect();
    parts.join(" ").replace("%3D", "=")
}
