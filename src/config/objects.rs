//! From the tree to what is looked at through the API server.

use super::cursor::Cursor;
use super::observed::{Allocatable, CsiDriver, NodeCondition, Pods};
use super::rule_options::duration_from;
use super::rules::labels_of;
use crate::syntax::{CSI_DRIVER_NAME, DNS_LABEL, QUALIFIED_NAME, shown};

/// `ConditionStatus` of core/v1.
pub(super) const STATUSES: [&str; 3] = ["True", "False", "Unknown"];

/// What a condition must be unless told otherwise.
pub(super) fn default_status() -> String {
    "True".into()
}

pub(super) fn csi_driver(cursor: &Cursor<'_>) -> Option<CsiDriver> {
    cursor.mapping("csiDriver", |fields| {
        let name = fields.required("name");
        let allocatable = fields.flag("allocatable");
        Some(CsiDriver {
            name: name?.text(&CSI_DRIVER_NAME)?,
            allocatable,
        })
    })
}

pub(super) fn allocatable(cursor: &Cursor<'_>) -> Option<Allocatable> {
    cursor.mapping("allocatable", |fields| {
        let resource = fields.required("resource")?.text(&QUALIFIED_NAME)?;
        Some(Allocatable { resource })
    })
}

pub(super) fn node_condition(cursor: &Cursor<'_>) -> Option<NodeCondition> {
    cursor.mapping("nodeCondition", |fields| {
        let kind = fields.required("type");
        let status = fields.optional("status");
        let max_age = fields.optional("maxAge");

        let kind = kind.and_then(|kind| kind.text(&QUALIFIED_NAME));
        let status = status.and_then(|status| status.parsed(parse_status));
        let max_age = max_age.and_then(|max_age| {
            let reason = "clocks that differ by seconds must not make a heartbeat too old";
            duration_from(&max_age, NodeCondition::LEAST_AGE, reason)
        });
        Some(NodeCondition {
            kind: kind?,
            status: status.unwrap_or_else(default_status),
            max_age,
        })
    })
}

fn parse_status(text: &str) -> Result<String, String> {
    if STATUSES.contains(&text) {
        Ok(text.to_owned())
    } else {
        let statuses = STATUSES.join(", ");
        Err(format!("must be one of {statuses}, not {}", shown(text)))
    }
}

pub(super) fn pods(cursor: &Cursor<'_>) -> Option<Pods> {
    cursor.mapping("pods", |fields| {
        let namespace = fields.required("namespace");
        let match_labels = fields.required("matchLabels");
        let newest_revision = fields.flag("newestRevision");

        let namespace = namespace.and_then(|namespace| namespace.text(&DNS_LABEL));
        let match_labels = match_labels.and_then(|field| {
            let labels = labels_of(&field)?;
            if labels.is_empty() {
                field.report("must have at least one label: without any, every pod would match");
            }
            Some(labels)
        });
        Some(Pods {
            namespace: namespace?,
            match_labels: match_labels?,
            newest_revision,
        })
    })
}
