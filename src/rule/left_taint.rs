//! The taints of the Node that no rule removes. Pure.

use k8s_openapi::api::core::v1::Taint;

use super::RuleState;
use crate::node::view::NodeView;

/// Why a taint stays on the Node, or is removed without a look at the gates.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Left {
    /// untaint put it back, and no rule for this Node names it now. untaint removes it.
    Orphaned,
    /// untaint put it back, and its rule is a dry run now.
    DryRun,
    /// `nodeSelector` of the rule does not select the Node.
    NotSelected,
}

impl Left {
    /// One word for the log and the status.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Orphaned => "orphaned",
            Self::DryRun => "dry-run",
            Self::NotSelected => "not-selected",
        }
    }

    /// What the word means, and what to do, for operators.
    pub fn meaning(self) -> &'static str {
        match self {
            Self::Orphaned => {
                "untaint put the taint back, and no rule for this Node names it now: untaint removes it"
            }
            Self::DryRun => {
                "untaint put the taint back, and the rule is a dry run now: the taint stays until you remove it or delete dryRun"
            }
            Self::NotSelected => {
                "nodeSelector of the rule does not select this Node, and no other rule removes the taint, so the taint stays: correct nodeSelector or the labels of the Node, unless another program removes the taint"
            }
        }
    }
}

/// A taint of the Node that no rule removes.
#[derive(Debug, Clone, PartialEq)]
pub struct LeftTaint {
    /// The rule that put it back, or that names it.
    pub rule: String,
    pub taint: Taint,
    pub left: Left,
    /// The server's message while it refuses to let untaint remove it.
    pub denied: Option<String>,
}

impl LeftTaint {
    pub(super) fn is_same(&self, other: &Self) -> bool {
        (&self.rule, &self.taint, self.left) == (&other.rule, &other.taint, other.left)
    }
}

/// The taints of `node` that rules name, none of which selects it.
pub(super) fn not_selected(node: &NodeView, rules: &[&mut RuleState]) -> Vec<LeftTaint> {
    let (selecting, others): (Vec<&RuleState>, Vec<&RuleState>) = rules
        .iter()
        .map(|rule| &**rule)
        .partition(|rule| rule.selects(node));
    let left = node.taints.iter().filter_map(|taint| {
        let names = |rule: &&&RuleState| rule.own_taints().include(taint);
        let rule = others.iter().find(names)?;
        let is_left = !selecting.iter().any(|rule| names(&rule));
        is_left.then(|| LeftTaint {
            rule: rule.rule().name.clone(),
            taint: taint.clone(),
            left: Left::NotSelected,
            denied: None,
        })
    });
    left.collect()
}
