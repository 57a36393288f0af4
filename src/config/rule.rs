//! A rule of the file.

mod deadline;
mod no_execute;
mod publish_condition;
mod retaint;

use std::collections::BTreeMap;
use std::time::Duration;

use schemars::JsonSchema;
use serde::Serialize;

use super::conflicts::PartialRule;
use super::duration::{self, DURATION};
use super::gate::Gate;
use super::read::{Cursor, Names};
use super::{labels, taint};
use crate::syntax::{DNS_LABEL, Form};
use crate::taint::TaintMatcher;

pub use deadline::{Deadline, DeadlineAction};
pub use publish_condition::PublishCondition;
pub use retaint::Retaint;

/// One taint to remove and the gates that must be open first.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("dependentSchemas" = {"retaint": retaint::needs()}))]
pub struct Rule {
    /// Unique in the configuration.
    #[schemars(transform = Form(&DNS_LABEL))]
    pub name: String,
    /// The taint to remove.
    pub taint: TaintMatcher,
    /// The rule applies only to a Node that has all of these labels, as in a PodSpec.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(default, transform = labels::describe)]
    pub node_selector: BTreeMap<String, String>,
    /// The gates, all of which must be open. With `[]`, the rule is ready at once.
    pub gates: Vec<Gate>,
    /// How long all gates must be open, without interruption, before untaint removes the taint.
    #[serde(serialize_with = "duration::serialize")]
    #[schemars(default, with = "String", transform = Form(&DURATION))]
    pub stable_for: Duration,
    /// What to do if a gate never opens.
    #[schemars(default)]
    pub deadline: Deadline,
    /// Put the taint back when a gate has closed.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(default, with = "Retaint")]
    pub retaint: Option<Retaint>,
    /// Also publish the state of the gates as a condition of the Node.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(default, with = "PublishCondition")]
    pub publish_condition: Option<PublishCondition>,
    /// Decide and report, but write nothing.
    #[schemars(default)]
    pub dry_run: bool,
}

impl Rule {
    /// A rule with the defaults of all other fields.
    pub fn new(name: impl Into<String>, taint: TaintMatcher, gates: Vec<Gate>) -> Self {
        Self {
            name: name.into(),
            taint,
            node_selector: BTreeMap::new(),
            gates,
            stable_for: Duration::ZERO,
            deadline: Deadline::default(),
            retaint: None,
            publish_condition: None,
            dry_run: false,
        }
    }

    /// The taint that `retaint` puts back.
    pub fn put_back(&self) -> Option<TaintMatcher> {
        let retaint = self.retaint.as_ref()?;
        Some(retaint.taint(&self.taint))
    }

    /// All taints that the rule removes.
    pub fn taints(&self) -> impl Iterator<Item = TaintMatcher> {
        let other = self
            .put_back()
            .filter(|put_back| put_back.key != self.taint.key);
        std::iter::once(self.taint.clone()).chain(other)
    }

    /// Whether the rule decides by what the Node itself says: its labels, conditions or resources.
    pub fn reads_node(&self) -> bool {
        let mut gates = self.gates.iter();
        !self.node_selector.is_empty() || gates.any(Gate::reads_node)
    }

    /// Whether `other` is this rule, possibly in another version: one that removes another taint, or from other Nodes,
    /// is another rule.
    pub fn is_same(&self, other: &Self) -> bool {
        self.name == other.name
            && self.taint == other.taint
            && self.node_selector == other.node_selector
    }

    /// Reads a rule. Adds what could be read of it to `partial_rules`, even if it has problems.
    pub(super) fn read<'t>(
        cursor: &Cursor<'t>,
        names: &mut Names<'t>,
        partial_rules: &mut Vec<PartialRule<'t>>,
    ) -> Option<Self> {
        cursor.mapping("a rule", |fields| {
            let name = fields.name(names);
            let taint_at = fields.demand("taint", "is missing");
            let taint = taint_at.as_ref().and_then(taint::read);
            let node_selector = match fields.find("nodeSelector") {
                Some(field) => labels::read(&field),
                None => Some(BTreeMap::new()),
            };
            let gates_at = fields.demand("gates", &format!("is missing{}", Gate::NONE));
            let gates = gates_at.as_ref().and_then(Gate::read_all);
            if let Some(((at, taint), gates)) =
                taint_at.as_ref().zip(taint.as_ref()).zip(gates.as_ref())
            {
                no_execute::warn(at, taint, gates);
            }
            let stable_for = fields.or("stableFor", Duration::ZERO, Cursor::duration);
            if let Some(at) = &gates_at
                && stable_for.is_zero()
            {
                Gate::warn_if_unstable(at);
            }
            let deadline = fields.or("deadline", Deadline::default(), Deadline::read);
            let retaint_at = fields.find("retaint");
            let retaint = retaint_at.as_ref().and_then(Retaint::read);
            if let Some(at) = &retaint_at {
                let has_gates = !gates_at.is_some_and(|gates| gates.is_empty_list());
                retaint::check_needs(at, taint.as_ref(), has_gates, deadline);
            }
            let put_back = retaint.as_ref().zip(taint.as_ref());
            let put_back = put_back.map(|(retaint, taint)| retaint.taint(taint));
            let put_back = retaint_at.zip(put_back);
            if let Some((at, taint)) = &put_back {
                retaint::warn(at, &taint.key);
            }
            let published_at = fields.find("publishCondition");
            let publish_condition = published_at.as_ref().and_then(PublishCondition::read);
            let dry_run = fields.flag("dryRun");
            partial_rules.push(PartialRule {
                at: cursor.clone(),
                node_selector: node_selector.clone(),
                gates: gates.clone().unwrap_or_default(),
                put_back,
                taint: taint_at.zip(taint.clone()),
                published: published_at
                    .zip(publish_condition.clone().map(|condition| condition.kind)),
            });
            Some(Self {
                name,
                taint: taint?,
                node_selector: node_selector?,
                gates: gates?,
                stable_for,
                deadline,
                retaint,
                publish_condition,
                dry_run,
            })
        })
    }
}
