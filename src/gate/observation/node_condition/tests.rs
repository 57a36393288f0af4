use serde_json::{Value, json};

use super::*;

fn node(status: &Value) -> NodeView {
    let metadata = json!({"name": "node", "uid": "1", "resourceVersion": "1"});
    serde_json::from_value(json!({"metadata": metadata, "status": status})).unwrap()
}

fn observe(wanted: &str, conditions: &Value) -> Outcome {
    let expected = NodeCondition {
        kind: "Ready".into(),
        status: wanted.into(),
        missing_is_false: false,
        max_age: None,
    };
    let seen = judge(
        &expected,
        &node(&json!({"conditions": conditions})),
        &NodeFreshness::default(),
        Timestamp::UNIX_EPOCH,
    );
    assert_eq!(seen.valid_for, None, "unless it has a maxAge");
    seen.outcome
}

#[test]
fn a_condition_holds_with_the_wanted_status_and_otherwise_says_why() {
    let ready = |status: &str, reason: &str, message: &str| {
        json!([
            {"type": "MemoryPressure", "status": "False"},
            {"type": "Ready", "status": status, "reason": reason, "message": message},
        ])
    };
    for (wanted, conditions, expected) in [
        (
            "True",
            json!([]),
            Outcome::Closed("the Node has no condition Ready".into()),
        ),
        (
            "True",
            json!([{"type": "ready", "status": "True"}]),
            Outcome::Closed("the Node has no condition Ready".into()),
        ),
        (
            "True",
            ready("True", "KubeletReady", "posting"),
            Outcome::Open("condition Ready is True".into()),
        ),
        (
            "False",
            ready("False", "", ""),
            Outcome::Open("condition Ready is False".into()),
        ),
        (
            "True",
            ready("False", "KubeletNotReady", "cni plugin not\ninitialized"),
            Outcome::Closed(
                "condition Ready is False, not True: KubeletNotReady: cni plugin not\\ninitialized"
                    .into(),
            ),
        ),
        (
            "False",
            ready("Unknown", "NodeStatusUnknown", ""),
            Outcome::Closed("condition Ready is Unknown, not False: NodeStatusUnknown".into()),
        ),
        (
            "True",
            json!([{"type": "Ready", "status": "False"}]),
            Outcome::Closed("condition Ready is False, not True".into()),
        ),
    ] {
        assert_eq!(observe(wanted, &conditions), expected, "{conditions}");
    }
    let long = observe("True", &ready("False", "R", &"x".repeat(10_000)));
    assert!(long.message().chars().count() < 300, "{long:?}");
}

#[test]
fn what_was_written_before_the_boot_is_unknown_whatever_it_says() {
    let conditions = json!([{"type": "Ready", "status": "True"}]);
    for (kind, wanted, expected) in [
        (
            "Ready",
            "True",
            Outcome::Unknown("condition Ready is True, but its last write is from 1970".into()),
        ),
        (
            "Ready",
            "False",
            Outcome::Unknown("condition Ready is True, but its last write is from 1970".into()),
        ),
        (
            "Other",
            "True",
            Outcome::Closed("the Node has no condition Other".into()),
        ),
    ] {
        let expected_condition = NodeCondition {
            kind: kind.into(),
            status: wanted.into(),
            missing_is_false: false,
            max_age: Some(Duration::from_mins(1)),
        };
        let freshness = NodeFreshness {
            stale_conditions: [("Ready".to_owned(), "from 1970".to_owned())].into(),
            ..NodeFreshness::default()
        };
        let node = node(&json!({"conditions": conditions}));
        let seen = judge(&expected_condition, &node, &freshness, Timestamp::now());
        assert_eq!((seen.outcome, seen.valid_for), (expected, None));
    }
}

#[test]
fn a_heartbeat_is_good_for_its_age_and_says_for_how_long() {
    let expected = NodeCondition {
        kind: "Ready".into(),
        status: "True".into(),
        missing_is_false: false,
        max_age: Some(Duration::from_mins(10)),
    };
    let clock = "2026-03-01T12:00:00Z".parse().unwrap();
    let observe = |status: &str, heartbeat: Value| {
        let conditions =
            json!([{"type": "Ready", "status": status, "lastHeartbeatTime": heartbeat}]);
        let node = node(&json!({"conditions": conditions}));
        let seen = judge(&expected, &node, &NodeFreshness::default(), clock);
        (seen.outcome, seen.valid_for)
    };
    let open = || Outcome::Open("condition Ready is True".into());
    let valid_for = |seconds| Some(Duration::from_secs(seconds));
    let at = |time: &str| json!(format!("2026-03-01T{time}Z"));
    assert_eq!(observe("True", at("12:00:00")), (open(), valid_for(600)));
    assert_eq!(observe("True", at("11:50:01")), (open(), valid_for(1)));
    assert_eq!(observe("True", at("12:00:05")), (open(), valid_for(605)));
    let closed = Outcome::Closed("condition Ready is False, not True".into());
    assert_eq!(observe("False", at("11:55:00")), (closed, valid_for(300)));
    for time in ["11:50:00", "12:10:00"] {
        let reason = format!(
            "condition Ready is True, but its last heartbeat was at 2026-03-01T{time}Z, and now it is \
             2026-03-01T12:00:00Z: the difference reaches maxAge, 10m"
        );
        assert_eq!(observe("True", at(time)), (Outcome::Unknown(reason), None));
    }
    let (without, valid_for) = observe("True", Value::Null);
    let reason = without.message().contains("has no lastHeartbeatTime");
    assert!(
        without.is_unknown() && reason && valid_for.is_none(),
        "{without:?}"
    );
}

/// nrc#283 (D19).
#[test]
fn an_absent_condition_counts_as_missing_says_once_the_kubelet_has_written_its_own() {
    const PROBLEM: &str = "NetworkUnavailable";
    let kubelets = |kind: &str, heartbeat: Value| json!({"type": kind, "status": "False", "lastHeartbeatTime": heartbeat});
    let beat = || json!("2026-03-01T12:00:00Z");
    let problem = |status: &str| json!({"type": PROBLEM, "status": status});
    let absent = "the Node has no condition NetworkUnavailable";
    let closed = || Outcome::Closed(absent.into());
    let counts = || Outcome::Open(format!("{absent}, which counts as False"));
    let nothing = || {
        Outcome::Unknown(format!(
            "{absent}, but the kubelet has not written its own conditions either"
        ))
    };
    let own = || kubelets("Ready", beat());
    for (missing_is_false, conditions, expected) in [
        (false, json!([own()]), closed()),
        (false, json!([]), closed()),
        (true, json!([own()]), counts()),
        (true, json!([kubelets("PIDPressure", beat())]), counts()),
        (true, json!([]), nothing()),
        (true, json!([kubelets("Ready", Value::Null)]), nothing()),
        (
            true,
            json!([kubelets("example.com/Other", beat())]),
            nothing(),
        ),
        // A condition that is there counts as itself.
        (
            true,
            json!([own(), problem("True")]),
            Outcome::Closed(format!("condition {PROBLEM} is True, not False")),
        ),
        (
            true,
            json!([own(), problem("Unknown")]),
            Outcome::Closed(format!("condition {PROBLEM} is Unknown, not False")),
        ),
        (
            true,
            json!([problem("False")]),
            Outcome::Open(format!("condition {PROBLEM} is False")),
        ),
    ] {
        let expected_condition = NodeCondition {
            kind: PROBLEM.into(),
            status: "False".into(),
            missing_is_false,
            max_age: None,
        };
        let seen = judge(
            &expected_condition,
            &node(&json!({"conditions": conditions})),
            &NodeFreshness::default(),
            Timestamp::UNIX_EPOCH,
        );
        assert_eq!(
            (seen.outcome, seen.valid_for),
            (expected, None),
            "{conditions}"
        );
    }
}
