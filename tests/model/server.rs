//! The API server: one Node that others change, and the effect of a JSON Patch.

use std::collections::{HashSet, VecDeque};

use json_patch::{Patch, PatchOperation};
use serde_json::{Value, json};
use untaint::api::ApiError;
use untaint::node::view::NodeView;

use crate::events::{Others, PALETTE};

pub(crate) const UNREGISTERED: &str = "karpenter.sh/unregistered";
pub(crate) const REGISTERED: &str = "karpenter.sh/registered";

/// An event of the watch.
#[derive(Debug)]
pub(crate) enum WatchUpdate {
    Apply(Box<NodeView>),
    Delete(String),
}

#[derive(Debug, Default)]
pub(crate) struct Server {
    node: Option<Value>,
    version: u64,
    uids: u64,
    /// The events that the watch has not delivered yet.
    pub(crate) undelivered: VecDeque<WatchUpdate>,
}

impl Server {
    pub(crate) fn node(&self) -> Option<&Value> {
        self.node.as_ref()
    }

    /// The Node as the agent parses it.
    pub(crate) fn view(&self) -> Option<NodeView> {
        let node = self.node.clone()?;
        Some(serde_json::from_value(node).unwrap())
    }

    /// Another client writes.
    pub(crate) fn change(&mut self, others: &Others) {
        match others {
            Others::Recreate(taints) => {
                self.delete();
                self.uids += 1;
                let metadata = json!({"name": "node", "uid": format!("uid-{}", self.uids), "labels": {}, "creationTimestamp": "2026-01-01T00:00:00Z"});
                self.node =
                    Some(json!({"metadata": metadata, "spec": {"providerID": "p", "taints": []}}));
                for taint in taints {
                    self.put(*taint, false);
                }
            }
            Others::Delete => self.delete(),
            _ if self.node.is_none() => return,
            Others::Put { taint, front } => self.put(*taint, *front),
            Others::TakeOff(taint) => self.take_off(PALETTE[*taint].0),
            Others::Rotate(by) => self.with_taints(|taints| {
                let by = by % taints.len().max(1);
                taints.rotate_left(by);
            }),
            Others::Pool(pool) => self.label("pool", *pool),
            Others::Unregistered => {
                self.label(REGISTERED, None);
                self.put(PALETTE.len() - 1, true);
            }
            Others::Registered => {
                self.label(REGISTERED, Some("true"));
                self.take_off(UNREGISTERED);
            }
        }
        self.changed();
    }

    /// Creates a new version, which the watch will deliver.
    fn changed(&mut self) {
        self.version += 1;
        if let Some(node) = &mut self.node {
            node["metadata"]["resourceVersion"] = json!(self.version.to_string());
            let spec = node["spec"].as_object_mut().unwrap();
            if spec.get("taints") == Some(&json!([])) {
                // The API omits an empty list.
                spec.remove("taints");
            }
        }
        self.undelivered
            .extend(self.view().map(Box::new).map(WatchUpdate::Apply));
    }

    fn delete(&mut self) {
        if let Some(node) = self.node.take() {
            let uid = node["metadata"]["uid"].as_str().unwrap().to_owned();
            self.undelivered.push_back(WatchUpdate::Delete(uid));
        }
    }

    fn with_taints(&mut self, change: impl FnOnce(&mut Vec<Value>)) {
        let taints = &mut self.node.as_mut().unwrap()["spec"]["taints"];
        if taints.is_null() {
            *taints = json!([]);
        }
        change(taints.as_array_mut().unwrap());
    }

    /// A taint with the same key and effect replaces the value, because a Node cannot have two.
    fn put(&mut self, taint: usize, front: bool) {
        let (key, value, effect) = PALETTE[taint];
        let mut taint = json!({"key": key, "effect": effect});
        if !value.is_empty() {
            taint["value"] = json!(value);
        }
        if effect == "NoExecute" {
            taint["timeAdded"] = json!("2026-01-01T00:00:01Z");
        }
        self.with_taints(|taints| {
            let same = taints.iter().position(|other| id(other) == id(&taint));
            match same {
                Some(index) => taints[index] = taint,
                None if front => taints.insert(0, taint),
                None => taints.push(taint),
            }
        });
    }

    fn take_off(&mut self, key: &str) {
        self.with_taints(|taints| taints.retain(|taint| taint["key"] != key));
    }

    fn label(&mut self, label: &str, value: Option<&str>) {
        let labels = self.node.as_mut().unwrap()["metadata"]["labels"].as_object_mut();
        let labels = labels.unwrap();
        match value {
            Some(value) => labels.insert(label.into(), json!(value)),
            None => labels.remove(label),
        };
    }

    pub(crate) fn get(&self) -> Result<NodeView, ApiError> {
        self.view().ok_or_else(not_found)
    }

    /// Applies the patch as the API server does. Returns the Node before and after it.
    pub(crate) fn patch(&mut self, patch: &Patch) -> Result<(Value, Value), ApiError> {
        let before = self.node.clone().ok_or_else(not_found)?;
        let mut after = before.clone();
        for operation in &patch.0 {
            // For the API server, a missing field has the value null.
            let is_met = matches!(operation, PatchOperation::Test(test)
                if test.value.is_null() && test.path.resolve(&after).is_err());
            if !is_met {
                json_patch::patch(&mut after, std::slice::from_ref(operation))
                    .map_err(|_| refused(422, false))?;
            }
        }
        let taints = after["spec"]["taints"].as_array();
        let mut ids = HashSet::new();
        if !taints
            .into_iter()
            .flatten()
            .all(|taint| ids.insert(id(taint)))
        {
            return Err(refused(422, true));
        }
        if after != before {
            self.node = Some(after);
            self.changed();
        }
        Ok((before, self.node.clone().unwrap()))
    }
}

/// The fields that identify a taint.
pub(crate) fn id(taint: &Value) -> (String, String) {
    let field = |name: &str| taint[name].as_str().unwrap_or_default().to_owned();
    (field("key"), field("effect"))
}

pub(crate) fn refused(code: u16, detailed: bool) -> ApiError {
    ApiError::Refused {
        code,
        message: "no".into(),
        detailed,
        retry_after: None,
    }
}

fn not_found() -> ApiError {
    refused(404, true)
}
