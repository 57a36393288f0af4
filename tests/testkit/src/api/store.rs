//! The objects, their versions and their history. No I/O.

use std::collections::BTreeMap;
use std::time::Instant;

use serde_json::{Value, json};

use super::object::{Id, Resource, Selection};
use super::patch;
use super::status::Status;

/// The state of the stand-in.
#[derive(Debug)]
pub(super) struct Store {
    objects: BTreeMap<Id, Value>,
    history: Vec<Event>,
    /// The version of the latest write to any object. The next write gets the next version.
    version: u64,
    /// A watch cannot start from an older version.
    oldest: u64,
    /// The number of objects so far, which is a part of their uids.
    created: u64,
    /// While this is set, watches get no events.
    pub(super) paused: bool,
    /// Watches that started in an earlier epoch have ended.
    pub(super) epoch: u64,
    /// The last event of those watches.
    pub(super) farewell: Option<Value>,
}

/// An object as it was stored at some time.
#[derive(Debug, Clone)]
pub struct Revision {
    pub at: Instant,
    pub object: Value,
}

/// One change, as a watch sends it.
#[derive(Debug)]
struct Event {
    at: Instant,
    version: u64,
    what: What,
}

#[derive(Debug)]
enum What {
    Change {
        kind: &'static str,
        id: Id,
        object: Value,
    },
    Bookmark,
}

impl Store {
    pub(super) fn new() -> Self {
        Self {
            objects: BTreeMap::new(),
            history: Vec::new(),
            version: 1,
            oldest: 1,
            created: 0,
            paused: false,
            epoch: 0,
            farewell: None,
        }
    }

    pub(super) fn version(&self) -> u64 {
        self.version
    }

    pub(super) fn get(&self, id: &Id) -> Result<&Value, Status> {
        self.objects.get(id).ok_or_else(|| Status::not_found(id))
    }

    /// The objects of a selection.
    pub(super) fn list(&self, selection: &Selection) -> impl Iterator<Item = &Value> {
        self.objects
            .iter()
            .filter(|(id, _)| selection.contains(id))
            .map(|(_, object)| object)
    }

    /// The watch events of a selection after `version`, as JSON.
    pub(super) fn events(
        &self,
        after: u64,
        selection: &Selection,
        bookmarks: bool,
    ) -> impl Iterator<Item = Value> {
        self.history
            .iter()
            .filter(move |event| event.version > after)
            .filter_map(move |event| match &event.what {
                What::Change { kind, id, object } => selection
                    .contains(id)
                    .then(|| json!({"type": kind, "object": object})),
                What::Bookmark => bookmarks.then(|| {
                    let object = bookmark(selection.resource, event.version);
                    json!({"type": "BOOKMARK", "object": object})
                }),
            })
    }

    /// Every version that was stored as `of`, in order.
    pub(super) fn revisions(&self, of: &Id) -> impl Iterator<Item = Revision> {
        self.history.iter().filter_map(move |event| {
            let What::Change { kind, id, object } = &event.what else {
                return None;
            };
            (id == of && *kind != "DELETED").then(|| Revision {
                at: event.at,
                object: object.clone(),
            })
        })
    }

    /// Whether a watch can start from `version`.
    pub(super) fn remembers(&self, version: u64) -> Result<(), Status> {
        if version < self.oldest {
            return Err(Status::expired(version, self.oldest));
        }
        Ok(())
    }

    /// Makes every version so far too old to start a watch.
    pub(super) fn forget(&mut self) {
        self.version += 1;
        self.oldest = self.version;
    }

    /// Sends a bookmark. The version of a cluster also increases with writes to other objects.
    pub(super) fn bookmark(&mut self) {
        self.version += 1;
        self.remember(What::Bookmark);
    }

    pub(super) fn create(&mut self, resource: Resource, object: Value) -> Result<Value, Status> {
        let mut object = resource.typed("", object);
        let Some(name) = object["metadata"]["name"].as_str() else {
            return Err(Status::bad_request("metadata.name is required"));
        };
        let id = Id::new(resource, name);
        if self.objects.contains_key(&id) {
            return Err(Status::already_exists(&id));
        }
        self.created += 1;
        object["metadata"]["uid"] = json!(format!("00000000-0000-4000-8000-{:012}", self.created));
        object["metadata"]["creationTimestamp"] = json!("2026-01-01T00:00:00Z");
        Ok(self.write("ADDED", id, object))
    }

    /// Applies `change`. As in the API server, nothing is written if the object stays the same.
    pub(super) fn update(
        &mut self,
        id: &Id,
        change: impl FnOnce(&mut Value) -> Result<(), Status>,
    ) -> Result<Value, Status> {
        let old = self.get(id)?;
        let mut new = old.clone();
        change(&mut new)?;
        serialize_empty_lists(&mut new);
        if new == *old {
            return Ok(new);
        }
        Ok(self.write("MODIFIED", id.clone(), new))
    }

    pub(super) fn patch(&mut self, id: &Id, body: &[u8]) -> Result<Value, Status> {
        self.update(id, |object| patch::apply(id, object, body))
    }

    /// The object after the change, with its current version.
    pub(super) fn try_patch(&self, id: &Id, body: &[u8]) -> Result<Value, Status> {
        let mut object = self.get(id)?.clone();
        patch::apply(id, &mut object, body)?;
        serialize_empty_lists(&mut object);
        Ok(object)
    }

    pub(super) fn delete(&mut self, id: &Id) -> Result<Value, Status> {
        let mut object = self.get(id)?.clone();
        self.objects.remove(id);
        self.version += 1;
        object["metadata"]["resourceVersion"] = json!(self.version.to_string());
        self.remember(What::Change {
            kind: "DELETED",
            id: id.clone(),
            object: object.clone(),
        });
        Ok(object)
    }

    fn write(&mut self, kind: &'static str, id: Id, mut object: Value) -> Value {
        self.version += 1;
        object["metadata"]["resourceVersion"] = json!(self.version.to_string());
        serialize_empty_lists(&mut object);
        self.objects.insert(id.clone(), object.clone());
        self.remember(What::Change {
            kind,
            id,
            object: object.clone(),
        });
        object
    }

    fn remember(&mut self, what: What) {
        self.history.push(Event {
            at: Instant::now(),
            version: self.version,
            what,
        });
    }
}

/// The object of a bookmark event.
pub(super) fn bookmark(resource: Resource, version: u64) -> Value {
    resource.typed(
        "",
        json!({"metadata": {"resourceVersion": version.to_string()}}),
    )
}

/// For an empty list, the API server omits the field (the taints of a Node), or writes `null` if the field is required
/// (the drivers of a `CSINode`).
fn serialize_empty_lists(object: &mut Value) {
    let Some(spec) = object["spec"].as_object_mut() else {
        return;
    };
    if spec.get("taints") == Some(&json!([])) {
        spec.remove("taints");
    }
    if spec.get("drivers") == Some(&json!([])) {
        spec.insert("drivers".into(), Value::Null);
    }
}
