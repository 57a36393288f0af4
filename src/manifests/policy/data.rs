//! What the rules say, as the one part of a policy that depends on the configuration.

use std::collections::BTreeMap;

use super::cel;
use crate::config::Rule;

/// By the keys of their taints, of which a server with 500 rules then looks at one. Everything is a list of strings, since
/// CEL in Kubernetes has no maps of mixed types; what is left out may be anything.
pub(in crate::manifests) fn rules(rules: &[&Rule]) -> String {
    let mut by_key: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for rule in rules {
        by_key.entry(&rule.taint.key).or_default().push(entry(rule));
    }
    let lines = by_key
        .into_iter()
        .map(|(key, entries)| format!("{}: [{}]", cel::string(key), entries.join(", ")));
    let lines: Vec<_> = lines.collect();
    match lines.as_slice() {
        [] => "{}".into(),
        lines => format!("{{\n{}\n}}", lines.join(",\n")),
    }
}

fn entry(rule: &Rule) -> String {
    let taint = &rule.taint;
    let effect = taint.effect.map(|effect| vec![effect.as_str().to_owned()]);
    let value = taint.value.clone().map(|value| vec![value]);
    let labels = rule.node_selector.iter();
    // Neither keys nor values of labels have an `=`.
    let labels: Vec<_> = labels
        .map(|(key, value)| format!("{key}={value}"))
        .collect();
    let labels = (!labels.is_empty()).then_some(labels);
    let retaint = rule.retaint.as_ref();
    // The value of the one taint that it makes: see `TaintMatcher::to_taint`.
    let retaint = retaint.map(|_| vec![taint.value.clone().unwrap_or_default()]);
    let condition = rule.publish_condition.as_ref();
    let condition = condition.map(|condition| vec![condition.kind.clone()]);
    let fields = [
        ("effect", effect),
        ("value", value),
        ("nodeSelector", labels),
        ("retaint", retaint),
        ("publishCondition", condition),
    ];
    let fields = fields.into_iter().filter_map(|(name, values)| {
        let values = values?;
        let values: Vec<_> = values.iter().map(|value| cel::string(value)).collect();
        Some(format!("{}: [{}]", cel::string(name), values.join(", ")))
    });
    format!("{{{}}}", fields.collect::<Vec<_>>().join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config;

    fn of(text: &str) -> String {
        let head = "apiVersion: untaint/v1alpha1\nkind: UntaintConfiguration\nrules:\n";
        let configuration = config::parse(&format!("{head}{text}")).unwrap();
        rules(&configuration.rules.iter().collect::<Vec<_>>())
    }

    #[test]
    fn what_a_rule_leaves_out_is_left_out_and_rules_of_one_key_stand_together() {
        let expected = "{
'example.com/a': [{'value': ['']}, {'value': ['v'], 'nodeSelector': ['pool=a']}],
'example.com/b': [{}],
'example.com/c': [{'effect': ['NoSchedule'], 'retaint': [''], 'publishCondition': ['example.com/C']}]
}";
        let text = "
- {name: c, taint: {key: example.com/c, effect: NoSchedule}, gates: [{name: f, file: {path: /x}}], retaint: {after: 30s}, publishCondition: {type: example.com/C}}
- {name: a, taint: {key: example.com/a, value: ''}, gates: []}
- {name: b, taint: {key: example.com/b}, gates: []}
- {name: d, taint: {key: example.com/a, value: v}, nodeSelector: {pool: a}, gates: []}
";
        assert_eq!(of(text), expected);
    }

    #[test]
    fn without_rules_there_is_an_empty_map() {
        assert_eq!(rules(&[]), "{}");
    }
}
