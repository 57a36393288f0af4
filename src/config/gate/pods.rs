use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;

use super::ObservedObject;
use crate::config::labels;
use crate::config::read::Cursor;
use crate::syntax::{DNS_LABEL, Form};

/// Pods on this node, at least one of which must be ready and not terminating.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Pods {
    /// The namespace of the pods.
    #[schemars(transform = Form(&DNS_LABEL))]
    pub namespace: String,
    /// Labels that the pods must have; at least one.
    #[schemars(transform = labels::describe, extend("minProperties" = 1))]
    pub match_labels: BTreeMap<String, String>,
    /// Only pods of the newest revision count: those with the `controller-revision-hash` of the pod on this node that
    /// was created last.
    #[schemars(default)]
    pub newest_revision: bool,
}

pub(super) fn read(cursor: &Cursor<'_>) -> Option<ObservedObject> {
    cursor.mapping("pods", |fields| {
        Some(ObservedObject::Pods(Pods {
            namespace: fields.required("namespace", |name| name.text(&DNS_LABEL)),
            match_labels: fields.required("matchLabels", |field| {
                let labels = labels::read(field)?;
                if labels.is_empty() {
                    field
                        .report("must have at least one label: without any, every pod would match");
                }
                Some(labels)
            }),
            newest_revision: fields.flag("newestRevision"),
        }))
    })
}
