//! Rules that conflict, in one file or in several: they write the same thing on the same Node, or wait for a condition
//! that they publish themselves.

use std::collections::{BTreeMap, HashMap, HashSet};

use super::gate::{Check, Gate, NodeCondition};
use super::read::Cursor;
use crate::taint::TaintMatcher;

/// The parts of a rule that could be read, with the places of what the rule writes.
pub(super) struct PartialRule<'t> {
    pub(super) at: Cursor<'t>,
    pub(super) node_selector: Option<BTreeMap<String, String>>,
    pub(super) gates: Vec<Gate>,
    pub(super) taint: Option<(Cursor<'t>, TaintMatcher)>,
    /// The taint of `retaint`.
    pub(super) put_back: Option<(Cursor<'t>, TaintMatcher)>,
    /// The type of the condition that the rule publishes.
    pub(super) published: Option<(Cursor<'t>, String)>,
}

/// Reports every conflict, at the later rule.
pub(super) fn report(rules: &[PartialRule<'_>]) {
    let mut publishers = Publishers::new();
    for (index, rule) in rules.iter().enumerate() {
        if let Some((_, kind)) = &rule.published {
            publishers.entry(kind).or_default().push((index, rule));
        }
    }
    for (index, rule) in rules.iter().enumerate() {
        report_writes(rule, &rules[..index]);
        report_condition(rule, rules, &publishers);
    }
}

/// The rules that publish a condition, with their index, by its type.
type Publishers<'a, 't> = HashMap<&'a str, Vec<(usize, &'a PartialRule<'t>)>>;

/// Reports what `rule` and one of the `earlier` rules both write on the same Node.
fn report_writes(rule: &PartialRule<'_>, earlier: &[PartialRule<'_>]) {
    const REMEDY: &str = "or different values of one label in nodeSelector";
    let others = || earlier.iter().filter(|other| rule.shares_nodes_with(other));
    let taints = || others().filter_map(|other| other.taint.as_ref());
    let (taint, overlap) = (rule.taint.as_ref(), TaintMatcher::overlaps);
    report_clash(taint, taints(), overlap, |place| {
        format!(
            "can match the same taint as the rule {place}; name different keys, values or effects, {REMEDY}"
        )
    });
    let put_backs = others().filter_map(|other| other.put_back.as_ref());
    // A rule puts back taints of one effect only, so equal keys are enough.
    let same_key = |one: &TaintMatcher, other: &TaintMatcher| one.key == other.key;
    report_clash(rule.put_back.as_ref(), put_backs, same_key, |place| {
        format!(
            "puts back the same taint as the rule {place}: a Node has one taint of a key and effect, whatever its value; \
             use retaint in one of them only, {REMEDY}"
        )
    });
    report_clash(rule.own_put_back(), taints(), overlap, |place| {
        format!("puts back a taint that the rule {place} removes; name another key, {REMEDY}")
    });
    let own_put_backs = others().filter_map(PartialRule::own_put_back);
    report_clash(taint, own_put_backs, overlap, |place| {
        format!(
            "can match the taint that the retaint {place} puts back; name another key, {REMEDY}"
        )
    });
    let published = others().filter_map(|other| other.published.as_ref());
    report_clash(rule.published.as_ref(), published, String::eq, |place| {
        format!("names the same condition as the one {place}; name different types, {REMEDY}")
    });
}

/// Reports the first of `others` that clashes with `own`, at the place of `own`.
fn report_clash<'t, T: 't>(
    own: Option<&'t (Cursor<'t>, T)>,
    mut others: impl Iterator<Item = &'t (Cursor<'t>, T)>,
    clash: impl Fn(&T, &T) -> bool,
    message: impl FnOnce(String) -> String,
) {
    if let Some((at, own)) = own
        && let Some((other, _)) = others.find(|(_, other)| clash(own, other))
    {
        at.report_key(message(at.whereabouts(other)));
    }
}

/// Reports a published condition that could never change, because the gates of its rule wait for it, or to which a gate
/// gives a `maxAge`.
fn report_condition(
    rule: &PartialRule<'_>,
    rules: &[PartialRule<'_>],
    publishers: &Publishers<'_, '_>,
) {
    let Some((at, kind)) = &rule.published else {
        return;
    };
    if let Some(last) = waiting_for(kind, rule, publishers) {
        let through = if std::ptr::eq(last, rule) {
            String::new()
        } else {
            format!(", through the rule {}", at.whereabouts(&last.at))
        };
        at.report_key(format!(
            "names a condition that the gates of the same rule wait for{through}: it could never change"
        ));
    }
    let has_age = |wanted: &NodeCondition| wanted.kind == *kind && wanted.max_age.is_some();
    let mut others = rules.iter().filter(|other| rule.shares_nodes_with(other));
    if let Some(other) = others.find(|other| other.waits_for().any(has_age)) {
        at.report_key(format!(
            "names a condition to which a gate of the rule {} gives a maxAge: untaint writes it only when it changes",
            at.whereabouts(&other.at)
        ));
    }
}

/// The rule with a gate for the condition of type `kind`, which `rule` publishes: `rule` itself, or one of the others for
/// whose conditions it waits, directly or through others. There must be a Node that all of these rules select: so the search
/// collects the labels of its path.
fn waiting_for<'a, 't>(
    kind: &str,
    rule: &'a PartialRule<'t>,
    publishers: &Publishers<'a, 't>,
) -> Option<&'a PartialRule<'t>> {
    /// There can be very many paths with different labels. Beyond this number, the rules count as waiting.
    const MOST: usize = 1000;
    let mut seen = HashSet::new();
    let mut waiting = vec![(rule, rule.node_selector.clone())];
    while let Some((rule, labels)) = waiting.pop() {
        for NodeCondition { kind: wanted, .. } in rule.waits_for() {
            if wanted == kind || seen.len() > MOST {
                return Some(rule);
            }
            for (index, other) in publishers.get(wanted.as_str()).into_iter().flatten() {
                let both = labels.as_ref().zip(other.node_selector.as_ref());
                if let Some((labels, others)) = both.filter(|(one, other)| agree(one, other)) {
                    let labels: BTreeMap<_, _> =
                        labels.clone().into_iter().chain(others.clone()).collect();
                    if seen.insert((*index, labels.clone())) {
                        waiting.push((*other, Some(labels)));
                    }
                }
            }
        }
    }
    None
}

/// Whether a Node can have the labels of both.
fn agree(one: &BTreeMap<String, String>, other: &BTreeMap<String, String>) -> bool {
    one.iter()
        .all(|(label, value)| other.get(label).is_none_or(|other| other == value))
}

impl PartialRule<'_> {
    fn shares_nodes_with(&self, other: &Self) -> bool {
        let selectors = self
            .node_selector
            .as_ref()
            .zip(other.node_selector.as_ref());
        selectors.is_some_and(|(one, other)| agree(one, other))
    }

    /// The taint of `retaint`, if its key is not that of the rule's taint.
    fn own_put_back(&self) -> Option<&(Cursor<'_>, TaintMatcher)> {
        let (_, taint) = self.taint.as_ref()?;
        let put_back = self.put_back.as_ref();
        put_back.filter(|(_, put_back)| put_back.key != taint.key)
    }

    fn waits_for(&self) -> impl Iterator<Item = &NodeCondition> {
        let checks = self.gates.iter().flat_map(Gate::checks);
        checks.filter_map(Check::node_condition)
    }
}
