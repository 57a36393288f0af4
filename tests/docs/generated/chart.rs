//! The parts of the Helm chart that are made from others: the templates of the program's manifests, the schema of its
//! configuration, and the files for monitoring.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use untaint::config;
use untaint::manifests::{NOT_OF_HOST, PROCESSES};

use super::assert_generated;
use crate::at_root;

const MANIFESTS: &str = "src/manifests";

/// What only `untaint manifests` writes: the beginnings of the names.
const LEFT_OUT: [&str; 6] = [
    "workload.about-patch",
    "workload.init-container",
    "workload.namespace",
    "workload.patch",
    "workload.post-start",
    "workload.sidecar",
];

#[test]
fn the_chart_has_the_templates_of_the_manifests() {
    let root = at_root(MANIFESTS);
    let mut templates = Vec::new();
    find(&root, &mut templates);
    templates.sort();
    let mut chart =
        String::from("{{/* Written by `make generate` from src/manifests. Do not edit. */}}\n");
    for path in templates {
        let name = path.strip_prefix(&root).unwrap().with_extension("");
        let name = name.to_str().unwrap().replace('/', ".");
        if LEFT_OUT.iter().any(|start| name.starts_with(start)) {
            continue;
        }
        // The chart reads the pods as objects, so it would lose their comments anyway.
        let has_comments = !name.starts_with("workload.") || name == "workload.config-map";
        let template = in_go(&fs::read_to_string(&path).unwrap(), has_comments);
        let _ = writeln!(
            chart,
            "{{{{- define \"untaint.{name}\" -}}}}\n{template}{{{{- end }}}}"
        );
    }
    let places = NOT_OF_HOST.iter();
    let places = places.flat_map(|(paths, why)| paths.iter().map(|path| (*path, *why)));
    let places: BTreeMap<_, _> = places.collect();
    let places = serde_json::to_string(&places).unwrap();
    for (name, text) in [("not-of-host", places.as_str()), ("processes", PROCESSES)] {
        let _ = writeln!(
            chart,
            "{{{{- define \"untaint.{name}\" -}}}}\n{text}\n{{{{- end }}}}"
        );
    }
    assert_generated("deploy/chart/templates/_generated.tpl", &chart);
}

/// Helm reads no file outside of the chart.
#[test]
fn the_chart_has_copies_of_the_files_for_monitoring_and_of_the_quota() {
    for path in [
        "monitoring/dashboard.json",
        "monitoring/pod-monitor.yaml",
        "monitoring/prometheus-rule.yaml",
        "components/resource-quota/resourcequota.yaml",
    ] {
        let text = fs::read_to_string(at_root(&format!("deploy/{path}"))).unwrap();
        let name = path.rsplit('/').next().unwrap();
        assert_generated(&format!("deploy/chart/files/{name}"), &text);
    }
}

fn find(directory: &Path, templates: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            find(&path, templates);
        } else if path.extension().is_some_and(|ending| ending == "yaml") {
            templates.push(path);
        }
    }
}

/// The same template in the language of Helm: a value that is alone on its line is a block or nothing.
fn in_go(template: &str, has_comments: bool) -> String {
    let mut text = String::new();
    for line in template.lines() {
        let content = line.trim_start();
        if content.starts_with("##") || !has_comments && content.starts_with('#') {
            continue;
        }
        let name = content.strip_prefix("{{");
        let name = name.and_then(|name| name.strip_suffix("}}"));
        if let Some(name) = name.filter(|name| !name.contains('{')) {
            let spaces = line.len() - content.len();
            let _ = writeln!(
                text,
                "{{{{- with .{name} }}}}{{{{ . | nindent {spaces} }}}}{{{{ end }}}}"
            );
        } else {
            let line = line.replace("{{", "{{ .").replace("}}", " }}");
            let _ = writeln!(text, "{line}");
        }
    }
    text
}

#[test]
fn the_schema_of_the_charts_values_contains_that_of_the_configuration() {
    let mut schema = config::schema::generate().as_value().clone();
    schema["title"] = "The values of the chart".into();
    // The chart has these, and says itself what to do if there are no rules.
    schema.as_object_mut().unwrap().remove("required");
    let fields = schema["properties"].as_object_mut().unwrap();
    fields["rules"].as_object_mut().unwrap().remove("minItems");
    fields.extend(own_values());
    // Descriptions are in values.yaml and docs/configuration.md, and the chart must stay small.
    drop_descriptions(&mut schema);
    let mut text = serde_json::to_string(&schema).unwrap();
    text.push('\n');
    assert_generated("deploy/chart/values.schema.json", &text);
}

/// A description is a string. A field of that name would be a schema.
fn drop_descriptions(schema: &mut Value) {
    match schema {
        Value::Object(fields) => {
            fields.retain(|name, value| name != "description" || !value.is_string());
            fields.values_mut().for_each(drop_descriptions);
        }
        Value::Array(items) => items.iter_mut().for_each(drop_descriptions),
        _ => {}
    }
}

/// As regular expressions.
const LABEL_VALUE: &str = "^([A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?)?$";
/// The name of a namespace.
const DNS_LABEL: &str = "[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?";

fn own_values() -> serde_json::Map<String, Value> {
    let text = || json!({"type": "string"});
    let switch = || json!({"type": "boolean"});
    let list = || json!({"type": "array", "items": {"type": "object"}});
    let object = || json!({"type": "object"});
    let matching = |pattern: &str| json!({"type": "string", "pattern": pattern});
    let labels = || json!({"type": "object", "additionalProperties": matching(LABEL_VALUE)});
    let enforcement = || json!({"enum": ["", "Deny", "Warn"]});
    let names = || json!({"type": "array", "items": {"type": "string", "pattern": format!("^{DNS_LABEL}$")}});
    let only = |fields: Value| json!({"type": "object", "additionalProperties": false, "properties": fields});
    let values = json!({
        "affinity": only(json!({
            "nodeAffinity": object(),
            "podAffinity": object(),
            "podAntiAffinity": object(),
        })),
        "annotations": object(),
        "checkNodeUid": switch(),
        // Charts that depend on this one often have a condition with this name.
        "enabled": switch(),
        "env": {"type": "array", "items": {"type": "object", "required": ["name"]}},
        "exactTolerations": switch(),
        "exempt": only(json!({"namespaces": names(), "serviceAccounts": {"type": "array", "items": {
            "type": "string",
            "pattern": format!("^{DNS_LABEL}:{DNS_LABEL}(\\.{DNS_LABEL})*$"),
        }}})),
        "extraVolumeMounts": list(),
        "extraVolumes": list(),
        "flowSchema": switch(),
        "form": {"enum": ["daemonset", "sidecar", "init-container", "post-start"]},
        // Helm gives it to the charts that a chart depends on.
        "global": object(),
        "image": only(json!({
            "repository": matching(r"^[a-z0-9][A-Za-z0-9._:/-]*$"),
            "tag": matching(r"^[A-Za-z0-9_.-]*$"),
            "digest": {"type": "string", "pattern": "^(sha256:[0-9a-f]{64})?$"},
            "pullPolicy": {"enum": ["", "Always", "IfNotPresent", "Never"]},
        })),
        "imagePullSecrets": {"type": "array", "items": only(json!({"name": text()}))},
        "labels": labels(),
        "nodeSelector": labels(),
        "monitoring": only(json!({
            "podMonitor": switch(),
            "prometheusRule": switch(),
            "dashboard": switch(),
            "labels": labels(),
            "dashboardLabels": labels(),
        })),
        "nodeNamePolicy": enforcement(),
        "podAnnotations": object(),
        "priorityClassName": text(),
        "resources": object(),
        "port": {"type": "integer", "minimum": 1, "maximum": 65535},
        "resourceQuota": switch(),
        "seLinuxType": matching("^([A-Za-z][A-Za-z0-9_]*)?$"),
        "serviceAccount": only(json!({
            "create": switch(),
            "name": matching(&format!("^({DNS_LABEL}(\\.{DNS_LABEL})*)?$")),
            "annotations": object(),
        })),
        "strictPolicy": switch(),
        "taintNewNodes": {"enum": ["", "ExceptKarpenter", "All"]},
        "tolerationPolicy": enforcement(),
        "tolerations": list(),
        "updateStrategy": object(),
    });
    match values {
        Value::Object(values) => values,
        _ => unreachable!("it is written as an object"),
    }
}
