//! `nodeCondition`: a condition of the Node.

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1;

use super::NodeOutcome;
use crate::config::{NodeCondition, shown_duration};
use crate::gate::{NodeFreshness, Outcome};
use crate::node::view::NodeView;
use crate::text::excerpt;

/// `clock` is the time now.
pub(super) fn judge(
    expected: &NodeCondition,
    node: &NodeView,
    freshness: &NodeFreshness,
    clock: Timestamp,
) -> NodeOutcome {
    let kind = &expected.kind;
    let mut conditions = node.conditions.iter();
    let Some(condition) = conditions.find(|condition| condition.type_ == *kind) else {
        return Outcome::Closed(format!("the Node has no condition {kind}")).into();
    };
    let seen = format!("condition {kind} is {}", excerpt(&condition.status));
    if let Some(when) = freshness.stale_conditions.get(kind) {
        return Outcome::Unknown(format!("{seen}, but its last write is {when}")).into();
    }
    let valid_for = expected.max_age.map(|age| valid_for(condition, age, clock));
    match valid_for.transpose() {
        Err(why) => Outcome::Unknown(format!("{seen}, but {why}")).into(),
        Ok(valid_for) => NodeOutcome {
            outcome: status(condition, &expected.status, seen),
            valid_for,
        },
    }
}

/// For how long the last heartbeat is not older than `max_age`.
fn valid_for(
    condition: &v1::NodeCondition,
    max_age: Duration,
    clock: Timestamp,
) -> Result<Duration, String> {
    let Some(heartbeat) = &condition.last_heartbeat_time else {
        return Err("it has no lastHeartbeatTime, which maxAge needs".into());
    };
    let heartbeat = heartbeat.0;
    // A heartbeat from the future is as wrong as one from the past.
    let distance = clock.duration_since(heartbeat).unsigned_abs();
    if distance >= max_age {
        return Err(format!(
            "its last heartbeat was at {heartbeat:.0}, and now it is {clock:.0}: the difference reaches maxAge, {}",
            shown_duration(max_age)
        ));
    }
    Ok(if heartbeat <= clock {
        max_age.saturating_sub(distance)
    } else {
        max_age.saturating_add(distance)
    })
}

fn status(condition: &v1::NodeCondition, expected: &str, seen: String) -> Outcome {
    if condition.status == expected {
        return Outcome::Open(seen);
    }
    let mut reason = format!("{seen}, not {expected}");
    let details = [&condition.reason, &condition.message];
    for detail in details
        .into_iter()
        .flatten()
        .filter(|text| !text.is_empty())
    {
        reason.push_str(": ");
        reason.push_str(&excerpt(detail));
    }
    Outcome::Closed(reason)
}

#[cfg(test)]
mod tests {
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
}
