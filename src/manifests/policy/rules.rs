//! The rules as data in CEL. With their hash, they are all that depends on the configuration in the policy for Nodes.

use std::collections::BTreeMap;

use super::string;
use crate::config::Rule;
use crate::manifests::Manifests;
use crate::taint::{Effect, TaintMatcher};

/// The rules that write, by the keys of their taints, so that the server looks up one of 500 rules. Every value is a
/// list of strings, because CEL in Kubernetes has no maps of mixed types. A missing field matches everything.
pub(super) fn in_cel(manifests: &Manifests) -> String {
    map(manifests.writing_rules())
}

fn map<'r>(rules: impl Iterator<Item = &'r Rule>) -> String {
    let mut by_key: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for rule in rules {
        for taint in rule.taints() {
            let entry = entry(rule, &taint);
            by_key.entry(taint.key).or_default().push(entry);
        }
    }
    if by_key.is_empty() {
        return "{}".into();
    }
    let lines = by_key.into_iter();
    let lines = lines.map(|(key, rules)| format!("{}: [{}]", string(&key), rules.join(", ")));
    format!("{{\n{}\n}}", lines.collect::<Vec<_>>().join(",\n"))
}

/// What the `rule` may do with one of its taints.
fn entry(rule: &Rule, taint: &TaintMatcher) -> String {
    let put_back = rule.put_back().filter(|put_back| put_back == taint);
    let put_back = put_back.map(|put_back| put_back.to_taint().value.unwrap_or_default());
    let condition = rule.publish_condition.as_ref();
    let condition = condition.filter(|_| *taint == rule.taint);
    fields(&[
        ("effect", one(taint.effect.map(Effect::as_str))),
        ("value", one(taint.value.as_deref())),
        ("nodeSelector", labels(rule)),
        ("retaint", one(put_back.as_deref())),
        (
            "publishCondition",
            one(condition.map(|condition| condition.kind.as_str())),
        ),
    ])
}

/// A map in CEL of those fields that have values.
pub(super) fn fields(fields: &[(&str, Vec<String>)]) -> String {
    let fields = fields.iter().filter(|(_, values)| !values.is_empty());
    let fields = fields.map(|(name, values)| format!("'{name}': [{}]", values.join(", ")));
    format!("{{{}}}", fields.collect::<Vec<_>>().join(", "))
}

/// The labels that a Node must have.
pub(super) fn labels(rule: &Rule) -> Vec<String> {
    // Labels contain no `=`.
    let labels = rule.node_selector.iter();
    let labels = labels.map(|(key, value)| string(&format!("{key}={value}")));
    labels.collect()
}

pub(super) fn one(value: Option<&str>) -> Vec<String> {
    value.map(string).into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config;

    fn of(text: &str) -> String {
        let head = "apiVersion: untaint/v1alpha1\nkind: UntaintConfiguration\nrules:\n";
        let configuration = config::parse(&format!("{head}{text}")).unwrap();
        map(configuration.rules.iter())
    }

    #[test]
    fn what_a_rule_leaves_out_is_left_out_and_rules_of_one_key_stand_together() {
        let expected = "{
'example.com/a': [{'value': ['']}, {'value': ['v'], 'nodeSelector': ['pool=a']}],
'example.com/b': [{}],
'example.com/c': [{'effect': ['NoSchedule'], 'retaint': [''], 'publishCondition': ['example.com/C']}],
'example.com/e': [{'effect': ['NoSchedule'], 'value': ['v'], 'nodeSelector': ['pool=a']}],
'example.com/put-back': [{'effect': ['NoSchedule'], 'nodeSelector': ['pool=a'], 'retaint': ['']}]
}";
        let text = "
- {name: c, taint: {key: example.com/c, effect: NoSchedule}, gates: [{name: f, file: {path: /x}}], retaint: {after: 30s}, publishCondition: {type: example.com/C}}
- {name: a, taint: {key: example.com/a, value: ''}, gates: []}
- {name: b, taint: {key: example.com/b}, gates: []}
- {name: d, taint: {key: example.com/a, value: v}, nodeSelector: {pool: a}, gates: []}
- {name: e, taint: {key: example.com/e, value: v, effect: NoSchedule}, nodeSelector: {pool: a}, gates: [{name: f, file: {path: /x}}], retaint: {key: example.com/put-back}}
";
        assert_eq!(of(text), expected);
    }

    #[test]
    fn without_rules_there_is_an_empty_map() {
        assert_eq!(map([].iter()), "{}");
    }
}
