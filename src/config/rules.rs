//! From the tree to rules.

use std::collections::BTreeMap;

use super::claims::{Claims, To};
use super::cursor::Cursor;
use super::cycles::{self, Publisher};
use super::fields::Fields;
use super::gates::gates;
use super::tree::Value;
use super::types::{Configuration, Rule};
use super::unique::Unique;
use super::{API_VERSION, KIND, rule_options, taints};
use crate::syntax::{DNS_LABEL, LABEL_VALUE, QUALIFIED_NAME, shown};

pub(super) fn configuration(root: &Cursor<'_>) -> Option<Configuration> {
    if !matches!(root.value(), Value::Map(_)) {
        // Another file by mistake, such as a token or a key.
        return root.clone().secret().mismatch("a mapping");
    }
    root.mapping("the file", |fields| {
        let identity = [("apiVersion", API_VERSION), ("kind", KIND)];
        let is_foreign = identity.map(|(name, expected)| {
            let field = fields.required(name);
            field.is_some_and(|field| field.parsed(exactly(expected)).is_none())
        });
        if is_foreign.contains(&true) {
            // Every other problem would follow from this one.
            fields.skip_rest();
            return None;
        }
        let events = fields.flag("events");
        let mut names = Unique::default();
        let mut claims = Claims::default();
        let mut publishers = Vec::new();
        let rules = fields
            .required("rules")?
            .filled_list(|cursor| rule(cursor, &mut names, &mut claims, &mut publishers));
        cycles::check(&publishers);
        let rules = rules?;
        cycles::check_ages(&publishers, &rules);
        Some(Configuration { events, rules })
    })
}

/// The end of a message for a rule that may have meant to have none.
pub(super) const NO_GATES: &str = "; write [] for a rule that is ready at once";

fn exactly(expected: &str) -> impl FnOnce(&str) -> Result<(), String> {
    move |text| {
        if text == expected {
            Ok(())
        } else {
            Err(format!("must be {expected:?}, not {}", shown(text)))
        }
    }
}

fn rule<'t>(
    cursor: &Cursor<'t>,
    names: &mut Unique<String>,
    claims: &mut Claims,
    publishers: &mut Vec<Publisher<'t>>,
) -> Option<Rule> {
    cursor.mapping("a rule", |fields| {
        let name = unique_name(fields, names);
        let taint = fields.required("taint");
        let node_selector = fields.optional("nodeSelector");
        let gates_list = fields.required_or("gates", &format!("is missing{NO_GATES}"));
        let stable_for = fields.optional("stableFor");
        let deadline = fields.optional("deadline");
        let retaint = fields.optional("retaint");
        let publish_condition = fields.optional("publishCondition");
        let dry_run = fields.flag("dryRun");

        let matcher = taint.as_ref().and_then(taints::matcher);
        let labels =
            node_selector.map_or_else(|| Some(BTreeMap::new()), |labels| labels_of(&labels));
        if let (Some(taint), Some(matcher), Some(labels)) = (&taint, &matcher, &labels) {
            claims.admit(To::Taint(matcher.clone()), labels, taint);
        }
        let gates = gates_list.and_then(|list| gates(&list));
        let stable_for = stable_for.and_then(|field| field.duration());
        let deadline = deadline.and_then(|field| rule_options::deadline(&field));
        let deadline = deadline.unwrap_or_default();
        let retaint = retaint.and_then(|field| {
            rule_options::check_retaint(&field, matcher.as_ref(), gates.as_deref(), deadline);
            if let (Some(matcher), Some(labels)) = (&matcher, &labels) {
                let key = matcher.key.clone();
                claims.admit(To::PutBack { key }, labels, &field);
            }
            rule_options::retaint(&field)
        });
        let publish_condition = publish_condition.and_then(|field| {
            let published = rule_options::publish_condition(&field)?;
            if let Some(gates) = &gates {
                let kind = published.kind.clone();
                publishers.push(Publisher::new(field.clone(), kind, gates));
            }
            if let Some(labels) = &labels {
                claims.admit(To::Condition(published.clone()), labels, &field);
            }
            Some(published)
        });
        Some(Rule {
            name: name?,
            taint: matcher?,
            node_selector: labels?,
            gates: gates?,
            stable_for: stable_for.unwrap_or_default(),
            deadline,
            retaint,
            publish_condition,
            dry_run,
        })
    })
}

/// The field `name` of a rule or gate.
pub(super) fn unique_name(
    fields: &mut Fields<'_, '_>,
    names: &mut Unique<String>,
) -> Option<String> {
    let field = fields.required("name")?;
    let name = field.text(&DNS_LABEL)?;
    match names.admit(name.clone(), field.line()) {
        Ok(()) => Some(name),
        Err(first) => {
            field.report(format!(
                "must be unique, but is also the name in line {first}"
            ));
            None
        }
    }
}

/// Labels that all must be there.
pub(super) fn labels_of(cursor: &Cursor<'_>) -> Option<BTreeMap<String, String>> {
    let labels = cursor.entries()?.into_iter().map(|(key, value)| {
        if let Err(message) = QUALIFIED_NAME.check(key) {
            value.report_key(format!("its key {message}"));
        }
        Some((key.to_owned(), value.text(&LABEL_VALUE)?))
    });
    // All are read before one that is wrong makes the selector wrong.
    let labels: Vec<_> = labels.collect();
    labels.into_iter().collect()
}
