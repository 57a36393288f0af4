//! What a rule writes, which no other rule may write on the same Node.

use std::collections::BTreeMap;

use super::cursor::Cursor;
use super::options::PublishCondition;
use crate::taint::TaintMatcher;

/// The end of messages about two rules.
const ELSEWHERE: &str = "or different values of one label in nodeSelector";

/// Something that a rule writes, and on which Nodes.
pub(super) struct Claim {
    to: To,
    node_selector: BTreeMap<String, String>,
    line: u64,
}

/// What is written.
#[derive(PartialEq)]
pub(super) enum To {
    Taint(TaintMatcher),
    /// A taint of this key. Of one effect, as there is only one that may be put back.
    PutBack {
        key: String,
    },
    Condition(PublishCondition),
}

/// The claims of the rules so far.
#[derive(Default)]
pub(super) struct Claims(Vec<Claim>);

impl Claims {
    /// Takes in a claim that stands `at`, and reports it if another rule has it already.
    pub(super) fn admit(
        &mut self,
        to: To,
        node_selector: &BTreeMap<String, String>,
        at: &Cursor<'_>,
    ) {
        let claim = Claim {
            to,
            node_selector: node_selector.clone(),
            line: at.line(),
        };
        if let Some(other) = self.0.iter().find(|other| claim.overlaps(other)) {
            let line = other.line;
            at.report_key(match claim.to {
                To::Taint(_) => format!(
                    "can match the same taint as the one in line {line}; name different keys, values or effects, {ELSEWHERE}"
                ),
                To::PutBack { .. } => format!(
                    "puts back what the rule in line {line} does: a Node has one taint of a key and effect, whatever its value; \
                     have one of them do so, {ELSEWHERE}"
                ),
                To::Condition(_) => format!(
                    "names the same condition as the one in line {line}; name different types, {ELSEWHERE}"
                ),
            });
        }
        self.0.push(claim);
    }
}

impl Claim {
    fn overlaps(&self, other: &Self) -> bool {
        let is_elsewhere = self.node_selector.iter().any(|(label, value)| {
            let others = other.node_selector.get(label);
            others.is_some_and(|others| others != value)
        });
        let is_same = match (&self.to, &other.to) {
            (To::Taint(taint), To::Taint(other)) => taint.overlaps(other),
            (to, other) => to == other,
        };
        is_same && !is_elsewhere
    }
}
