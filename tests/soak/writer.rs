//! Another writer of a Node's taints. It overwrites no change of others, because each write names the version of the
//! Node that it changes.

use std::collections::BTreeSet;

use http::{Method, Request, header};
use kube::{Client, Error};
use serde_json::{Value, json};
use tokio::sync::watch::Receiver;

use crate::ledger::{Differences, Identity, Ledger, find, taints};

/// The kind of write.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum How {
    JsonPatch,
    MergePatch,
    StrategicMergePatch,
    ServerSideApply,
    Put,
}

impl How {
    pub(crate) const ALL: [Self; 5] = [
        Self::JsonPatch,
        Self::MergePatch,
        Self::StrategicMergePatch,
        Self::ServerSideApply,
        Self::Put,
    ];
}

/// One change of the list.
enum Edit {
    Add(usize, Value),
    Replace(usize, Value),
    Remove(usize),
    Move(usize, usize),
}

/// The results of all its writes.
#[derive(Default)]
pub(crate) struct Tally {
    pub(crate) writes: usize,
    pub(crate) conflicts: usize,
    pub(crate) unknown: usize,
    pub(crate) differences: Differences,
    /// The kinds of writes that succeeded.
    pub(crate) ways: BTreeSet<How>,
}

impl Tally {
    pub(crate) fn add(&mut self, other: Self) {
        self.writes += other.writes;
        self.conflicts += other.conflicts;
        self.unknown += other.unknown;
        self.differences.add(&other.differences);
        self.ways.extend(other.ways);
    }
}

pub(crate) struct Writer {
    how: How,
    client: Client,
    uri: String,
    ledger: Ledger,
    random: fastrand::Rng,
    tally: Tally,
}

impl Writer {
    /// `own` are taints that no other writer changes, and that the Node does not have yet.
    pub(crate) fn new(how: How, client: Client, node: &str, own: Vec<Identity>) -> Self {
        Self {
            how,
            client,
            uri: format!("/api/v1/nodes/{node}"),
            ledger: Ledger::of(own),
            random: fastrand::Rng::new(),
            tally: Tally::default(),
        }
    }

    /// Writes at full speed until `stop`. Compares every Node that it sees, and the Node at the end, with its ledger.
    pub(crate) async fn run(mut self, stop: Receiver<bool>) -> Tally {
        let mut node = self.read().await;
        while !*stop.borrow() {
            let (edit, identity) = self.edit(&taints(&node));
            let after = apply(&taints(&node), &edit);
            match self.write(&node, &edit, &after).await {
                Ok(answer) => {
                    self.tally.writes += 1;
                    self.tally.ways.insert(self.how);
                    if let Some(identity) = identity {
                        let written = find(&after, &identity).map(|index| after[index].clone());
                        self.ledger.0.insert(identity, written);
                    }
                    self.compare(&answer);
                    node = answer;
                }
                Err(Error::Api(status)) if [409, 422].contains(&status.code) => {
                    self.tally.conflicts += 1;
                    node = self.read().await;
                }
                Err(Error::Api(status)) => panic!("{:?}: {status:?}", self.how),
                Err(_) => {
                    self.tally.unknown += 1;
                    node = self.get().await;
                    self.ledger.adopt(&taints(&node));
                }
            }
        }
        self.read().await;
        self.tally
    }

    /// Changes the value of an own taint, adds or removes an own taint, or moves any taint to another place.
    fn edit(&mut self, now: &[Value]) -> (Edit, Option<Identity>) {
        if now.len() > 1 && self.random.u8(..4) == 0 {
            let [from, to] = [(); 2].map(|()| self.random.usize(..now.len()));
            return (Edit::Move(from, to), None);
        }
        let own: Vec<_> = self.ledger.0.keys().cloned().collect();
        let identity = own[self.random.usize(..own.len())].clone();
        let mut taint = json!({"key": identity.0, "effect": identity.1});
        if self.random.bool() {
            taint["value"] = format!("x{}", self.random.u16(..)).into();
        }
        if identity.1 == "NoExecute" {
            taint["timeAdded"] = "2026-10-18T00:00:00Z".into();
        }
        let edit = match find(now, &identity) {
            None => Edit::Add(self.random.usize(..=now.len()), taint),
            Some(index) if self.random.bool() => Edit::Remove(index),
            Some(index) => Edit::Replace(index, taint),
        };
        (edit, Some(identity))
    }

    async fn write(&self, node: &Value, edit: &Edit, after: &[Value]) -> Result<Value, Error> {
        let version = &node["metadata"]["resourceVersion"];
        let merge = json!({"metadata": {"resourceVersion": version}, "spec": {"taints": after}});
        let patch = |content: &'static str, body| (Method::PATCH, content, body);
        let (method, content, body) = match self.how {
            How::JsonPatch => patch("application/json-patch+json", json_patch(version, edit)),
            How::MergePatch => patch("application/merge-patch+json", merge),
            How::StrategicMergePatch => patch("application/strategic-merge-patch+json", merge),
            How::ServerSideApply => {
                let mut object = json!({"apiVersion": "v1", "kind": "Node"});
                object["metadata"] = json!({
                    "name": node["metadata"]["name"],
                    "resourceVersion": version,
                });
                object["spec"] = merge["spec"].clone();
                patch("application/apply-patch+yaml", object)
            }
            How::Put => {
                let mut object = node.clone();
                object["spec"]["taints"] = after.into();
                (Method::PUT, "application/json", object)
            }
        };
        let query = match self.how {
            How::ServerSideApply => "?fieldManager=applier&force=true",
            _ => "",
        };
        let request = Request::builder()
            .method(method)
            .uri(format!("{}{query}", self.uri))
            .header(header::CONTENT_TYPE, content)
            .body(body.to_string().into_bytes());
        self.client.request(request.unwrap()).await
    }

    async fn read(&mut self) -> Value {
        let node = self.get().await;
        self.compare(&node);
        node
    }

    async fn get(&self) -> Value {
        let request = Request::get(&self.uri).body(Vec::new());
        self.client.request(request.unwrap()).await.unwrap()
    }

    fn compare(&mut self, node: &Value) {
        let differences = self.ledger.compare(&taints(node));
        self.tally.differences.add(&differences);
    }
}

fn apply(now: &[Value], edit: &Edit) -> Vec<Value> {
    let mut taints = now.to_vec();
    match edit {
        Edit::Add(index, taint) => taints.insert(*index, taint.clone()),
        Edit::Replace(index, taint) => taints[*index] = taint.clone(),
        Edit::Remove(index) => drop(taints.remove(*index)),
        Edit::Move(from, to) => {
            let taint = taints.remove(*from);
            taints.insert(*to, taint);
        }
    }
    taints
}

/// The smallest possible patch. The other kinds replace the whole list.
fn json_patch(version: &Value, edit: &Edit) -> Value {
    let path = |index: &usize| format!("/spec/taints/{index}");
    let operation = match edit {
        Edit::Add(index, taint) => json!({"op": "add", "path": path(index), "value": taint}),
        Edit::Replace(index, taint) => {
            json!({"op": "replace", "path": path(index), "value": taint})
        }
        Edit::Remove(index) => json!({"op": "remove", "path": path(index)}),
        Edit::Move(from, to) => json!({"op": "move", "from": path(from), "path": path(to)}),
    };
    json!([{"op": "test", "path": "/metadata/resourceVersion", "value": version}, operation])
}
