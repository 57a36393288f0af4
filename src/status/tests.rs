use std::collections::BTreeSet;

use serde_json::Value;

use super::*;
use crate::gate::State;

/// Of a Node on which `rules` rules have gone wrong in every way there is: each field has a value.
pub(crate) fn status(rules: usize) -> Status {
    let time: Timestamp = "2026-01-02T03:04:05.678Z".parse().unwrap();
    let gate = |name: &str, state, message: &str| GateStatus {
        name: name.into(),
        state,
        message: message.into(),
        since: time,
    };
    let rule = |index| RuleStatus {
        name: format!("rule-{index}"),
        taint: "example.com/not-ready:NoExecute".into(),
        retaint_taint: None,
        decision: "waiting",
        meaning: "some gate is not open",
        done: false,
        since: time,
        overdue: true,
        dry_run: true,
        gates: vec![
            gate("conflist", State::Open, "10-demo.conflist"),
            gate("agent", State::Closed, "status 503"),
            gate("driver", State::Unknown, "not evaluated yet"),
        ],
        last_removal: Some(LastRemoval {
            time,
            waited_seconds: Some(12.345),
            last_gate: Some("agent".into()),
        }),
        last_put_back: Some(time),
        denied: Some("403: not allowed".into()),

        write_failure: Some("409: conflict".into()),
        publish_failure: Some("403: no condition".into()),
    };
    Status {
        version: "0.0.0",
        node: NodeStatus {
            name: "worker-1".into(),
            seen: true,
            resource_version: Some(4711),
        },
        configuration: ConfigurationStatus {
            source: "/etc/untaint/config.yaml".into(),
            sha256: Some("0f".repeat(32)),
            loaded: time,
            reloads: 2,
            failed_reloads: 1,
            failing: true,
            last_failure: Some(Incident {
                time,
                message: "1:1: must be a mapping\n2:1: unknown".into(),
            }),
        },
        api: ApiStatus {
            watching: false,
            last_error: Some(Incident {
                time,
                message: "connection refused".into(),
            }),
        },
        policy: PolicyStatus {
            state: "not-held",
            message: "apply it".into(),
        },
        waits_for: Some("the last read".into()),
        rules: (0..rules).map(rule).collect(),
        left_taints: Vec::new(),
    }
}

#[test]
fn every_field_is_in_the_reference() {
    let mut fields = BTreeSet::new();
    collect_fields(&serde_json::to_value(status(1)).unwrap(), "", &mut fields);
    assert!(!fields.is_empty());
    let reference = include_str!("../../docs/status.md");
    for field in fields {
        assert!(reference.contains(&format!("| `{field}` |")), "{field}");
    }
}

fn collect_fields(value: &Value, path: &str, fields: &mut BTreeSet<String>) {
    match value {
        Value::Object(object) => {
            for (name, value) in object {
                let dot = if path.is_empty() { "" } else { "." };
                collect_fields(value, &format!("{path}{dot}{name}"), fields);
            }
        }
        Value::Array(items) => {
            for item in items {
                collect_fields(item, &format!("{path}[]"), fields);
            }
        }
        _ => {
            fields.insert(path.to_owned());
        }
    }
}
