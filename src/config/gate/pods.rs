use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;

use super::ObservedObject;
use crate::config::labels;
use crate::config::read::{Cursor, Value};
use crate::syntax::{DNS_LABEL, DNS_SUBDOMAIN, Each, Form};

/// Pods on this node: one that is ready or, with `every` or `daemonSets`, those of DaemonSets.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend(
    "if" = {
        "required": ["every"],
        "dependentSchemas": {"every": {"properties": {"every": {"const": true}}}},
    },
    "else" = {"if": {"required": ["daemonSets"]}, "else": {"required": ["matchLabels"]}},
))]
pub struct Pods {
    /// The namespace of the pods.
    #[schemars(transform = Form(&DNS_LABEL))]
    pub namespace: String,
    /// Labels that the pods must have; at least one. Needed, unless the gate has `every` or `daemonSets`.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(default, transform = labels::describe, extend("minProperties" = 1))]
    pub match_labels: BTreeMap<String, String>,
    /// All DaemonSets with a pod on this node must be ready here, and there must be at least one.
    #[schemars(default)]
    pub every: bool,
    /// These DaemonSets must be ready here.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(default, length(min = 1), transform = Each(&DNS_SUBDOMAIN))]
    pub daemon_sets: Vec<String>,
    /// Only pods of the newest revision count: those with the `controller-revision-hash` of the pod on this node that
    /// was created last. With `every` and `daemonSets`, this is always so.
    #[schemars(default)]
    pub newest_revision: bool,
}

impl Pods {
    /// Whether the gate is about DaemonSets, and not about one ready pod.
    pub fn is_of_daemon_sets(&self) -> bool {
        self.every || !self.daemon_sets.is_empty()
    }
}

pub(super) fn read(cursor: &Cursor<'_>) -> Option<ObservedObject> {
    cursor.mapping("pods", |fields| {
        let namespace = fields.required("namespace", |name| name.text(&DNS_LABEL));
        let labels_at = fields.find("matchLabels");
        let every = fields.find("every").map(|every| every.boolean());
        let sets_at = fields.find("daemonSets");
        let newest_revision = fields.flag("newestRevision");
        if labels_at.is_none() && sets_at.is_none() && matches!(every, None | Some(Some(false))) {
            fields.report_missing(
                "matchLabels",
                "is missing; a gate for DaemonSets has every: true or daemonSets instead",
            );
        }
        let daemon_sets = sets_at.and_then(|sets| read_daemon_sets(&sets));
        Some(ObservedObject::Pods(Pods {
            namespace,
            match_labels: labels_at.map_or_else(|| Some(BTreeMap::new()), |at| read_labels(&at))?,
            every: every.flatten().unwrap_or_default(),
            daemon_sets: daemon_sets.unwrap_or_default(),
            newest_revision,
        }))
    })
}

/// Warns about `every: true` of a rule without `stableFor`, if the `check` is of this kind.
pub(super) fn warn_if_unstable(check: &Cursor<'_>) {
    if let Some(every) = check.get("pods").and_then(|at| at.get("every"))
        && matches!(every.value(), Value::Bool(true))
    {
        every.warn_key(
            "opens the gate before all pods exist; set stableFor in the rule, and name the important DaemonSets in daemonSets",
        );
    }
}

fn read_daemon_sets(field: &Cursor<'_>) -> Option<Vec<String>> {
    let mut known = BTreeMap::new();
    field.filled_list(|at| {
        let name = at.text(&DNS_SUBDOMAIN)?;
        if let Some(first) = known.insert(name.clone(), at.clone()) {
            at.report_repeated(&first);
        }
        Some(name)
    })
}

fn read_labels(field: &Cursor<'_>) -> Option<BTreeMap<String, String>> {
    let labels = labels::read(field)?;
    if labels.is_empty() {
        field.report(
            "must have at least one label: without any, every pod would match; for the DaemonSets of the namespace, delete \
             it and write every: true",
        );
    }
    Some(labels)
}
