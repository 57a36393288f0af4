//! Warnings about valid configurations.

use std::path::Path;

use super::{text, untaint};

#[test]
fn config_validate_warns_of_a_condition_that_may_be_missing_in_a_rule_without_stable_for() {
    let directory = tempfile::TempDir::new().unwrap();
    let file = directory.path().join("config.yaml");
    let file = file.to_str().unwrap();
    let condition = "nodeCondition: {type: A, status: \"False\"";
    for (gate, stable_for, place) in [
        (format!("{condition}}}"), "", None),
        (
            format!("{condition}, missing: \"False\"}}"),
            "",
            Some("7:53: warning: rules[0].gates[1].nodeCondition"),
        ),
        (
            format!("{condition}, missing: \"False\"}}"),
            "stableFor: 0s",
            Some("7:53: warning: rules[0].gates[1].nodeCondition"),
        ),
        (
            format!("{condition}, missing: \"False\"}}"),
            "stableFor: 30s",
            None,
        ),
        (
            format!("anyOf: [{{name: b, {condition}, missing: \"False\"}}}}]"),
            "",
            Some("7:71: warning: rules[0].gates[1].anyOf[0].nodeCondition"),
        ),
    ] {
        let rule = format!(
            "- name: a\n  taint: {{key: example.com/a}}\n  gates: [{{name: f, file: {{path: /x}}}},\n{{name: c, {gate}}}]\n  {stable_for}\n"
        );
        testkit::agent::write_configuration(Path::new(file), &rule).unwrap();
        let output = untaint(&["config", "validate", file], &[]);
        assert_eq!(output.status.code(), Some(0), "{output:?}");
        let expected = place.map_or(String::new(), |place| format!(
            "{file}:{place}.missing: opens the gate before the component that writes the condition has started, because the \
             condition is missing until then; set stableFor in the rule to a longer time than the component needs\n"
        ));
        assert_eq!(text(&output.stderr), expected);
    }
}
