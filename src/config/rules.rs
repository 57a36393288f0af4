//! From the tree to rules.

use std::collections::BTreeMap;

use super::cursor::Cursor;
use super::fields::Fields;
use super::gates::gates;
use super::syntax::{DNS_LABEL, LABEL_VALUE, QUALIFIED_NAME, shown};
use super::types::{Configuration, Deadline, DeadlineAction, Rule};
use super::unique::Unique;
use super::{API_VERSION, KIND, taints};
use crate::taint::TaintMatcher;

pub(super) fn configuration(root: &Cursor<'_>) -> Option<Configuration> {
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
        let mut names = Unique::default();
        let mut claims = Vec::new();
        let rules = fields
            .required("rules")?
            .filled_list(|cursor| rule(cursor, &mut names, &mut claims))?;
        Some(Configuration { rules })
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

fn rule(cursor: &Cursor<'_>, names: &mut Unique<String>, claims: &mut Vec<Claim>) -> Option<Rule> {
    cursor.mapping("a rule", |fields| {
        let name = unique_name(fields, names);
        let taint = fields.required("taint");
        let node_selector = fields.optional("nodeSelector");
        let gates_list = fields.required_or("gates", &format!("is missing{NO_GATES}"));
        let stable_for = fields.optional("stableFor");
        let deadline = fields.optional("deadline");
        let dry_run = fields.flag("dryRun");

        let matcher = taint.as_ref().and_then(taints::matcher);
        let node_selector =
            node_selector.map_or_else(|| Some(BTreeMap::new()), |labels| labels_of(&labels));
        if let (Some(taint), Some(matcher), Some(labels)) = (&taint, &matcher, &node_selector) {
            let claim = Claim {
                taint: matcher.clone(),
                node_selector: labels.clone(),
                line: taint.line(),
            };
            claim.check_against(claims, taint);
            claims.push(claim);
        }
        let gates = gates_list.and_then(|list| gates(&list));
        let stable_for = stable_for.and_then(|field| field.duration());
        let deadline = deadline.and_then(|field| deadline_of(&field));
        Some(Rule {
            name: name?,
            taint: matcher?,
            node_selector: node_selector?,
            gates: gates?,
            stable_for: stable_for.unwrap_or_default(),
            deadline: deadline.unwrap_or_default(),
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

fn deadline_of(cursor: &Cursor<'_>) -> Option<Deadline> {
    cursor.mapping("deadline", |fields| {
        let after = fields.optional("after").map(|field| field.duration());
        let action = fields
            .optional("action")
            .map(|field| field.parsed(parse_action));
        let default = Deadline::default();
        Some(Deadline {
            after: after.unwrap_or(Some(default.after))?,
            action: action.unwrap_or(Some(default.action))?,
        })
    })
}

fn parse_action(name: &str) -> Result<DeadlineAction, String> {
    let mut actions = DeadlineAction::ALL.into_iter();
    let found = actions.find(|action| action.as_str() == name);
    found.ok_or_else(|| format!("must be Keep or Remove, not {}", shown(name)))
}

/// What a rule removes, and where.
struct Claim {
    taint: TaintMatcher,
    node_selector: BTreeMap<String, String>,
    line: u64,
}

impl Claim {
    fn check_against(&self, others: &[Self], at: &Cursor<'_>) {
        if let Some(other) = others.iter().find(|other| self.overlaps(other)) {
            at.report_key(format!(
                "can match the same taint as the one in line {}; name different keys, values or effects, \
                 or different values of one label in nodeSelector",
                other.line
            ));
        }
    }

    fn overlaps(&self, other: &Self) -> bool {
        let is_elsewhere = self.node_selector.iter().any(|(label, value)| {
            let others = other.node_selector.get(label);
            others.is_some_and(|others| others != value)
        });
        self.taint.overlaps(&other.taint) && !is_elsewhere
    }
}
