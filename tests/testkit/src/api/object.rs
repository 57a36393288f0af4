//! The kinds of objects that there are, and how one or several objects are named.

use serde_json::{Value, json};

/// A kind of object that the stand-in holds. None of them is in a namespace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Resource {
    /// `VERSION`, or `GROUP/VERSION`.
    api_version: &'static str,
    kind: &'static str,
    plural: &'static str,
    /// Whether the answer to a deletion is the object instead of a `Status`.
    pub(super) returns_deleted: bool,
}

/// Nodes.
pub const NODES: Resource = Resource {
    api_version: "v1",
    kind: "Node",
    plural: "nodes",
    returns_deleted: false,
};

/// `CSINode`s.
pub const CSI_NODES: Resource = Resource {
    api_version: "storage.k8s.io/v1",
    kind: "CSINode",
    plural: "csinodes",
    returns_deleted: true,
};

impl Resource {
    const ALL: [Self; 2] = [NODES, CSI_NODES];

    /// The kind of `path`, with the rest of the path.
    pub(super) fn of(path: &str) -> Option<(Self, &str)> {
        Self::ALL
            .into_iter()
            .find_map(|resource| Some((resource, path.strip_prefix(&resource.path())?)))
    }

    fn path(self) -> String {
        let root = if self.group().is_empty() {
            "api"
        } else {
            "apis"
        };
        format!("/{root}/{}/{}", self.api_version, self.plural)
    }

    /// Empty for the core group.
    fn group(self) -> &'static str {
        self.api_version
            .split_once('/')
            .map_or("", |(group, _)| group)
    }

    /// `object`, which is empty or has other fields, as one of this kind; with the suffix `List`, as a list of them.
    pub(super) fn typed(self, suffix: &str, mut object: Value) -> Value {
        object["kind"] = json!(format!("{}{suffix}", self.kind));
        object["apiVersion"] = json!(self.api_version);
        object
    }
}

/// One object.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Id {
    pub(super) resource: Resource,
    pub(super) name: String,
}

impl Id {
    pub(super) fn new(resource: Resource, name: &str) -> Self {
        Self {
            resource,
            name: name.to_owned(),
        }
    }

    pub(super) fn node(name: &str) -> Self {
        Self::new(NODES, name)
    }

    /// The name in a message: `nodes "NAME"`, `csinodes.storage.k8s.io "NAME"`.
    pub(super) fn of_resource(&self) -> String {
        self.quoted(self.resource.plural)
    }

    /// The name in the message of a validation: `Node "NAME"`, `CSINode.storage.k8s.io "NAME"`.
    pub(super) fn of_kind(&self) -> String {
        self.quoted(self.resource.kind)
    }

    fn quoted(&self, what: &str) -> String {
        let (name, group) = (&self.name, self.resource.group());
        let dot = if group.is_empty() { "" } else { "." };
        format!("{what}{dot}{group} \"{name}\"")
    }

    /// The `details` of a `Status` about the object.
    pub(super) fn details(&self) -> Value {
        self.details_as(self.resource.plural)
    }

    /// The same from a validation.
    pub(super) fn details_of_kind(&self) -> Value {
        self.details_as(self.resource.kind)
    }

    fn details_as(&self, kind: &str) -> Value {
        let mut details = json!({"name": self.name, "kind": kind});
        let group = self.resource.group();
        if !group.is_empty() {
            details["group"] = json!(group);
        }
        details
    }
}

/// The objects that a list or a watch selects.
#[derive(Debug, Clone)]
pub(super) struct Selection {
    pub(super) resource: Resource,
    /// `None` for all objects.
    pub(super) name: Option<String>,
}

impl Selection {
    pub(super) fn contains(&self, id: &Id) -> bool {
        let Self { resource, name } = self;
        *resource == id.resource && name.as_ref().is_none_or(|name| *name == id.name)
    }
}
