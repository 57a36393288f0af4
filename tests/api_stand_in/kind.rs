//! The kinds of objects of both servers, and the messages of the servers about them.

use serde_json::{Value, json};

/// A kind. Its objects hold a list.
pub(crate) struct Kind {
    pub(crate) path: &'static str,
    pub(crate) name: &'static str,
    /// The name with the group, as in messages.
    qualified_name: &'static str,
    api_version: &'static str,
    /// Empty for the core group.
    group: &'static str,
    plural: &'static str,
    qualified_plural: &'static str,
    /// The JSON pointer to the list.
    pub(crate) list: &'static str,
    /// The stored form of an empty list.
    pub(crate) empty_list: Option<Value>,
    /// Whether the answer to a deletion is the object instead of a `Status`.
    pub(crate) returns_deleted: bool,
    /// An item, with every field that the server would add.
    item: fn() -> Value,
}

pub(crate) static NODE: Kind = Kind {
    path: "/api/v1/nodes",
    name: "Node",
    qualified_name: "Node",
    api_version: "v1",
    group: "",
    plural: "nodes",
    qualified_plural: "nodes",
    list: "/spec/taints",
    empty_list: None,
    returns_deleted: false,
    item: || json!({"key": "a", "effect": "NoSchedule"}),
};

pub(crate) static CSI_NODE: Kind = Kind {
    path: "/apis/storage.k8s.io/v1/csinodes",
    name: "CSINode",
    qualified_name: "CSINode.storage.k8s.io",
    api_version: "storage.k8s.io/v1",
    group: "storage.k8s.io",
    plural: "csinodes",
    qualified_plural: "csinodes.storage.k8s.io",
    list: "/spec/drivers",
    empty_list: Some(Value::Null),
    returns_deleted: true,
    item: || json!({"name": "a", "nodeID": "i-1", "topologyKeys": null, "allocatable": {"count": 25}}),
};

impl Kind {
    pub(crate) fn uri(&self, name: &str) -> String {
        format!("{}/{name}", self.path)
    }

    /// A list with one item.
    pub(crate) fn one(&self) -> Value {
        json!([(self.item)()])
    }

    pub(crate) fn object(&self, name: &str, list: &Value) -> Value {
        let field = self.list.trim_start_matches("/spec/");
        json!({
            "apiVersion": self.api_version,
            "kind": self.name,
            "metadata": {"name": name},
            "spec": {field: list},
        })
    }

    /// The name of an object in messages.
    pub(crate) fn quoted(&self, name: &str) -> String {
        format!("{} \"{name}\"", self.qualified_plural)
    }

    /// The details of a failure.
    pub(crate) fn about(&self, name: &str) -> Value {
        self.about_as(name, self.plural)
    }

    fn about_as(&self, name: &str, kind: &str) -> Value {
        let mut details = json!({"name": name, "kind": kind});
        if !self.group.is_empty() {
            details["group"] = json!(self.group);
        }
        details
    }

    /// The failure of a write to an immutable field.
    pub(crate) fn immutable(&self, name: &str, field: &str, value: &str) -> Value {
        let cause = format!("Invalid value: \"{value}\": field is immutable");
        let mut details = self.about_as(name, self.name);
        details["causes"] =
            json!([{"reason": "FieldValueInvalid", "message": cause, "field": field}]);
        let what = format!("{} \"{name}\"", self.qualified_name);
        let message = format!("{what} is invalid: {field}: {cause}");
        failure(422, "Invalid", &message, details)
    }
}

/// `details` is `null` if there are none.
pub(crate) fn failure(code: u16, reason: &str, message: &str, details: Value) -> Value {
    let mut status = json!({
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": message,
        "reason": reason,
        "code": code,
    });
    if !details.is_null() {
        status["details"] = details;
    }
    status
}

pub(crate) fn forbidden_option(field: &str, message: &str) -> Value {
    let cause = format!("Forbidden: {message}");
    let message = format!("ListOptions.meta.k8s.io \"\" is invalid: {field}: {cause}");
    let details = json!({"group": "meta.k8s.io", "kind": "ListOptions", "causes": [
        {"reason": "FieldValueForbidden", "message": cause, "field": field},
    ]});
    failure(422, "Invalid", &message, details)
}

pub(crate) fn version(object: &Value) -> u64 {
    let version = object["metadata"]["resourceVersion"].as_str();
    version.unwrap().parse().unwrap()
}
