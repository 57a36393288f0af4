//! The Nodes, their versions and their history. No I/O.

use std::collections::BTreeMap;
use std::time::Instant;

use serde_json::{Value, json};

use super::patch;
use super::status::Status;

/// Everything that the stand-in knows of Nodes.
#[derive(Debug)]
pub(super) struct Store {
    nodes: BTreeMap<String, Value>,
    history: Vec<Event>,
    /// That of the latest write; the next write has the next one.
    version: u64,
    /// A watch cannot start from an older version.
    oldest: u64,
    /// Nodes made so far, from which their uids are made.
    created: u64,
    /// Watches get nothing while this is set.
    pub(super) paused: bool,
    /// Watches that began in an earlier epoch have ended.
    pub(super) epoch: u64,
}

/// A Node as it was stored at some time.
#[derive(Debug, Clone)]
pub struct Revision {
    /// When.
    pub at: Instant,
    /// All of it.
    pub node: Value,
}

/// One change, as a watch tells of it.
#[derive(Debug)]
struct Event {
    at: Instant,
    version: u64,
    kind: &'static str,
    /// `None`: a bookmark.
    name: Option<String>,
    object: Value,
}

impl Store {
    pub(super) fn new() -> Self {
        Self {
            nodes: BTreeMap::new(),
            history: Vec::new(),
            version: 1,
            oldest: 1,
            created: 0,
            paused: false,
            epoch: 0,
        }
    }

    pub(super) fn version(&self) -> u64 {
        self.version
    }

    pub(super) fn get(&self, name: &str) -> Result<&Value, Status> {
        self.nodes.get(name).ok_or_else(|| Status::not_found(name))
    }

    /// All Nodes, or the one that the field selector names.
    pub(super) fn list<'a>(&'a self, name: Option<&'a str>) -> impl Iterator<Item = &'a Value> {
        self.nodes
            .iter()
            .filter(move |(key, _)| name.is_none_or(|name| name == *key))
            .map(|(_, node)| node)
    }

    /// The watch events after `version`, of one Node or of all, as their JSON.
    pub(super) fn events<'a>(
        &'a self,
        after: u64,
        name: Option<&'a str>,
        bookmarks: bool,
    ) -> impl Iterator<Item = Value> + 'a {
        let wanted = move |event: &&Event| match &event.name {
            Some(key) => name.is_none_or(|name| name == key),
            None => bookmarks,
        };
        self.history
            .iter()
            .filter(move |event| event.version > after)
            .filter(wanted)
            .map(|event| json!({"type": event.kind, "object": event.object}))
    }

    /// All that was ever stored under `name`, in its order.
    pub(super) fn revisions(&self, name: &str) -> impl Iterator<Item = Revision> {
        self.history
            .iter()
            .filter(move |event| event.name.as_deref() == Some(name) && event.kind != "DELETED")
            .map(|event| Revision {
                at: event.at,
                node: event.object.clone(),
            })
    }

    /// Whether a watch can start from `version`.
    pub(super) fn remembers(&self, version: u64) -> Result<(), Status> {
        if version < self.oldest {
            return Err(Status::expired(version, self.oldest));
        }
        Ok(())
    }

    /// Makes every version up to now too old to start a watch from.
    pub(super) fn forget(&mut self) {
        self.version += 1;
        self.oldest = self.version;
    }

    /// Tells the watches of a version without a change. A cluster's version moves on by writes to other objects.
    pub(super) fn bookmark(&mut self) {
        self.version += 1;
        let object = bookmark(self.version);
        self.remember("BOOKMARK", None, object);
    }

    pub(super) fn create(&mut self, mut node: Value) -> Result<Value, Status> {
        let Some(name) = node["metadata"]["name"].as_str().map(str::to_owned) else {
            return Err(Status::bad_request("metadata.name is required"));
        };
        if self.nodes.contains_key(&name) {
            return Err(Status::already_exists(&name));
        }
        self.created += 1;
        node["metadata"]["uid"] = json!(format!("00000000-0000-4000-8000-{:012}", self.created));
        node["metadata"]["creationTimestamp"] = json!("2026-01-01T00:00:00Z");
        Ok(self.write("ADDED", &name, node))
    }

    /// Applies `change`; what it leaves as it was is not written, as in the API server.
    pub(super) fn update(
        &mut self,
        name: &str,
        change: impl FnOnce(&mut Value) -> Result<(), Status>,
    ) -> Result<Value, Status> {
        let old = self.get(name)?;
        let mut new = old.clone();
        change(&mut new)?;
        drop_empty_taints(&mut new);
        if new == *old {
            return Ok(new);
        }
        Ok(self.write("MODIFIED", name, new))
    }

    pub(super) fn patch(&mut self, name: &str, body: &[u8]) -> Result<Value, Status> {
        self.update(name, |node| patch::apply(name, node, body))
    }

    pub(super) fn delete(&mut self, name: &str) -> Result<Value, Status> {
        let mut node = self.get(name)?.clone();
        self.nodes.remove(name);
        self.version += 1;
        node["metadata"]["resourceVersion"] = json!(self.version.to_string());
        self.remember("DELETED", Some(name), node.clone());
        Ok(node)
    }

    fn write(&mut self, kind: &'static str, name: &str, mut node: Value) -> Value {
        self.version += 1;
        node["metadata"]["resourceVersion"] = json!(self.version.to_string());
        drop_empty_taints(&mut node);
        self.nodes.insert(name.to_owned(), node.clone());
        self.remember(kind, Some(name), node.clone());
        node
    }

    fn remember(&mut self, kind: &'static str, name: Option<&str>, object: Value) {
        self.history.push(Event {
            at: Instant::now(),
            version: self.version,
            kind,
            name: name.map(str::to_owned),
            object,
        });
    }
}

/// The object of a bookmark event.
pub(super) fn bookmark(version: u64) -> Value {
    json!({
        "kind": "Node",
        "apiVersion": "v1",
        "metadata": {"resourceVersion": version.to_string()},
        "spec": {},
    })
}

/// The API server's serialization omits an empty list.
fn drop_empty_taints(node: &mut Value) {
    if let Some(spec) = node["spec"].as_object_mut()
        && spec.get("taints") == Some(&json!([]))
    {
        spec.remove("taints");
    }
}
