//! `untaint config`, and what it shares with other commands.

use testkit::agent::write_configuration;

use super::{text, untaint};

#[test]
fn config_validate_prints_every_error_with_its_place_and_exits_with_2() {
    let file = "tests/fixtures/config/invalid/many-at-once.yaml";
    let output = untaint(&["config", "validate", "examples/cilium.yaml", file], &[]);
    assert_eq!(output.status.code(), Some(2));
    let lines: Vec<_> = text(&output.stderr).lines().collect();
    assert!(lines.len() > 10);
    assert!(
        lines
            .iter()
            .all(|line| line.starts_with(&format!("{file}:"))),
        "{lines:#?}"
    );
}

#[test]
fn warnings_about_a_valid_file_are_printed_with_their_place() {
    let directory = tempfile::TempDir::new().unwrap();
    let file = directory.path().join("config.yaml");
    let file = file.to_str().unwrap();
    let startup = "startup-taint.cluster-autoscaler.kubernetes.io/x";
    let deprecated = "ignore-taint.cluster-autoscaler.kubernetes.io/x";
    let status = "status-taint.cluster-autoscaler.kubernetes.io/x";
    for (key, retaint, warned) in [
        (startup, String::new(), None),
        (startup, "retaint: {}".into(), Some(startup)),
        (deprecated, "retaint: {after: 1m}".into(), Some(deprecated)),
        (
            startup,
            format!("retaint: {{key: {startup}}}"),
            Some(startup),
        ),
        (
            "example.com/x",
            format!("retaint: {{key: {deprecated}}}"),
            Some(deprecated),
        ),
        (startup, format!("retaint: {{key: {status}}}"), None),
        (status, "retaint: {}".into(), None),
        (
            "example.com/startup-taint.cluster-autoscaler.kubernetes.io",
            "retaint: {}".into(),
            None,
        ),
    ] {
        let gates = "gates: [{name: f, file: {path: /run/ready}}]";
        let rule = format!(
            "- name: a\n  taint: {{key: {key}, effect: NoSchedule}}\n  {gates}\n  {retaint}\n"
        );
        write_configuration(file.as_ref(), &rule).unwrap();
        let expected = warned.map_or(String::new(), |key| format!(
            "warning: {file}:7:3: rules[0].retaint: puts back a taint with the key {key}: Cluster Autoscaler counts a node \
             with such a taint as unready, and stops scaling if too many nodes are unready; set key to another key, such as {status}\n"
        ));
        let manifests = ["manifests", "--image", "untaint", "--config", file];
        for command in [&["config", "validate", file][..], &manifests] {
            let output = untaint(command, &[]);
            assert_eq!(output.status.code(), Some(0));
            assert_eq!(text(&output.stderr), expected, "{command:?}");
        }
    }
}

#[test]
fn config_show_prints_a_configuration_that_validates() {
    let output = untaint(&["config", "show", "examples/cilium.yaml"], &[]);
    assert_eq!(output.status.code(), Some(0));
    assert!(untaint::config::parse(text(&output.stdout)).is_ok());
}

#[test]
fn config_schema_prints_the_schema_by_which_editors_check_a_file() {
    let output = untaint(&["config", "schema"], &[]);
    assert_eq!(output.status.code(), Some(0));
    let schema: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(
        schema["$schema"],
        "https://json-schema.org/draft/2020-12/schema"
    );
    assert_eq!(schema["title"], untaint::config::KIND);
    assert!(schema["properties"]["rules"]["description"].is_string());
}

/// Validates a rule whose second gate is this one. Except for the name of the file, `warning` is all that must be said of it.
fn assert_warning(gate: &str, stable_for: &str, warning: Option<String>) {
    let directory = tempfile::TempDir::new().unwrap();
    let file = directory.path().join("config.yaml");
    let file = file.to_str().unwrap();
    let rule = format!(
        "- name: a\n  taint: {{key: example.com/a}}\n  gates: [{{name: f, file: {{path: /x}}}},\n{{name: c, {gate}}}]\n  {stable_for}\n"
    );
    write_configuration(file.as_ref(), &rule).unwrap();
    let output = untaint(&["config", "validate", file], &[]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let expected = warning.map_or(String::new(), |warning| {
        format!("warning: {file}:{warning}\n")
    });
    assert_eq!(text(&output.stderr), expected, "{gate} {stable_for}");
}

#[test]
fn a_condition_that_may_be_missing_in_a_rule_without_stable_for_has_a_warning() {
    let condition = "nodeCondition: {type: A, status: \"False\"";
    for (gate, stable_for, place) in [
        (format!("{condition}}}"), "", None),
        (
            format!("{condition}, missing: \"False\"}}"),
            "",
            Some("7:53: rules[0].gates[1].nodeCondition"),
        ),
        (
            format!("{condition}, missing: \"False\"}}"),
            "stableFor: 0s",
            Some("7:53: rules[0].gates[1].nodeCondition"),
        ),
        (
            format!("{condition}, missing: \"False\"}}"),
            "stableFor: 30s",
            None,
        ),
        (
            format!("anyOf: [{{name: b, {condition}, missing: \"False\"}}}}]"),
            "",
            Some("7:71: rules[0].gates[1].anyOf[0].nodeCondition"),
        ),
    ] {
        let warning = place.map(|place| format!(
            "{place}.missing: opens the gate before the component that writes the condition has started, because the \
             condition is missing until then; set stableFor in the rule to a longer time than the component needs"
        ));
        assert_warning(&gate, stable_for, warning);
    }
}

#[test]
fn every_daemon_set_in_a_rule_without_stable_for_has_a_warning() {
    let every = "pods: {namespace: a, every: true}";
    let both = "pods: {namespace: a, every: true, daemonSets: [b]}";
    for (gate, stable_for, place) in [
        (every, "", Some("7:32: rules[0].gates[1].pods")),
        (every, "stableFor: 0s", Some("7:32: rules[0].gates[1].pods")),
        (every, "stableFor: 5s", None),
        (both, "", Some("7:32: rules[0].gates[1].pods")),
        (both, "stableFor: 5s", None),
        (
            "anyOf: [{name: b, pods: {namespace: a, every: true}}]",
            "",
            Some("7:50: rules[0].gates[1].anyOf[0].pods"),
        ),
        ("pods: {namespace: a, daemonSets: [b]}", "", None),
        (
            "pods: {namespace: a, every: false, daemonSets: [b]}",
            "",
            None,
        ),
        ("pods: {namespace: a, matchLabels: {a: b}}", "", None),
    ] {
        let warning = place.map(|place| format!(
            "{place}.every: opens the gate before all pods exist; set stableFor in the rule, and name the \
             important DaemonSets in daemonSets"
        ));
        assert_warning(gate, stable_for, warning);
    }
    let example = "examples/system-pods.yaml";
    let output = untaint(&["config", "validate", example], &[]);
    assert_eq!(text(&output.stderr), "");
}

#[test]
fn a_resource_that_must_equal_its_capacity_has_a_warning_if_this_says_little() {
    let assert_warning = |resource: &str, more: &str, stable_for: &str, warning: Option<&str>| {
        let gate = format!("allocatable: {{resource: {resource}, {more}}}");
        let column = 37 + resource.len();
        let field = format!("7:{column}: rules[0].gates[1].allocatable.equalsCapacity");
        let warning = warning.map(|warning| format!("{field}: {warning}"));
        assert_warning(&gate, stable_for, warning);
    };
    let gpu = "nvidia.com/gpu";
    let first = "opens the gate with the first device, if the device plugin lists one after the other; add atLeast, or set \
                 stableFor in the rule";
    for (resource, more, stable_for, warning) in [
        (gpu, "equalsCapacity: true", "", Some(first)),
        (gpu, "equalsCapacity: true", "stableFor: 5s", None),
        (gpu, "equalsCapacity: true, atLeast: 8", "", None),
        (gpu, "equalsCapacity: false", "", None),
        ("memory", "equalsCapacity: false, atLeast: 1Gi", "", None),
    ] {
        assert_warning(resource, more, stable_for, warning);
    }
    for resource in [
        "cpu",
        "memory",
        "ephemeral-storage",
        "pods",
        "hugepages-2Mi",
    ] {
        for (more, remedy) in [
            ("equalsCapacity: true, atLeast: 1", "delete this field"),
            ("equalsCapacity: true", "write atLeast instead"),
        ] {
            let warning = format!(
                "the kubelet reports {resource} from its start, less what it reserves, so the gate opens at once or never; \
                 {remedy}"
            );
            for stable_for in ["stableFor: 5s", ""] {
                assert_warning(resource, more, stable_for, Some(&warning));
            }
        }
    }
}

/// Flannel's DaemonSet tolerates only `NoSchedule`: with another effect, it has no pod on the node, and its CNI configuration
/// never comes.
#[test]
fn a_rule_that_waits_for_a_cni_with_the_effect_no_execute_has_a_warning() {
    let directory = tempfile::TempDir::new().unwrap();
    let file = directory.path().join("config.yaml");
    let file = file.to_str().unwrap();
    let cni = "{name: cni, cniConfig: {}}";
    let group = "{name: group, anyOf: [{name: a, file: {path: /a}}, {name: b, cniConfig: {}}]}";
    let others = "{name: a, file: {path: /a}}, {name: b, pods: {namespace: a, matchLabels: {a: b}}}, \
                  {name: c, csiDriver: {name: d}}";
    for (key, effect, gates, warned) in [
        ("example.com/a", "NoExecute", cni, Some("cni")),
        ("example.com/a", "NoExecute", group, Some("group")),
        ("example.com/a", "NoSchedule", cni, None),
        ("example.com/a", "PreferNoSchedule", cni, None),
        // The taint may have any effect.
        ("example.com/a", "", cni, None),
        ("example.com/a", "NoExecute", others, None),
        ("node.cilium.io/agent-not-ready", "NoExecute", cni, None),
    ] {
        let effect = match effect {
            "" => String::new(),
            effect => format!("effect: {effect}, "),
        };
        let rule = format!("- name: a\n  taint: {{{effect}key: {key}}}\n  gates: [{gates}]\n");
        write_configuration(file.as_ref(), &rule).unwrap();
        let expected = warned.map_or(String::new(), |gate| format!(
            "warning: {file}:5:11: rules[0].taint.effect: keeps away the pods of a CNI that tolerate only NoSchedule, such as \
             Flannel's, and the gate {gate} then never opens; check that the DaemonSet of your CNI tolerates NoExecute, or use \
             the effect NoSchedule\n"
        ));
        let output = untaint(&["config", "validate", file], &[]);
        assert_eq!(text(&output.stderr), expected, "{rule}");
        assert_eq!(output.status.code(), Some(0));
    }
}
