//! `allocatable` and `nodeCondition`: the status of the own Node. Pure.

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1;
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;

use super::Judgement;
use super::since_boot::SinceBoot;
use crate::config::{Allocatable, NodeCondition, shown_duration};
use crate::gate::Outcome;
use crate::node::view::NodeView;
use crate::text::excerpt;

pub(super) fn allocatable(expected: &Allocatable, node: &NodeView) -> Outcome {
    let resource = &expected.resource;
    let Some(Quantity(quantity)) = node.allocatable.get(resource) else {
        return Outcome::Closed(format!("the Node has no allocatable {resource}"));
    };
    let seen = format!("allocatable {resource} is {}", excerpt(quantity));
    if is_nothing(quantity) {
        Outcome::Closed(seen)
    } else {
        Outcome::Open(seen)
    }
}

/// Whether a quantity (apimachinery `resource.Quantity`: a decimal number, then a suffix or an exponent) is not above
/// zero: it is negative, or no digit of its number is other than 0.
fn is_nothing(quantity: &str) -> bool {
    let number = quantity
        .split(|c: char| c.is_ascii_alphabetic())
        .next()
        .unwrap_or_default();
    number.starts_with('-') || !number.contains(|c: char| ('1'..='9').contains(&c))
}

/// `clock`: now.
pub(super) fn condition(
    expected: &NodeCondition,
    node: &NodeView,
    since_boot: &SinceBoot,
    clock: Timestamp,
) -> Judgement {
    let kind = &expected.kind;
    let mut conditions = node.conditions.iter();
    let Some(condition) = conditions.find(|condition| condition.type_ == *kind) else {
        return Outcome::Closed(format!("the Node has no condition {kind}")).into();
    };
    let seen = format!("condition {kind} is {}", excerpt(&condition.status));
    if let Some(when) = since_boot.leftovers.get(kind) {
        return Outcome::Unknown(format!("{seen}, but its last write is {when}")).into();
    }
    let lasts = match expected.max_age {
        Some(max_age) => match rest(condition, max_age, clock) {
            Ok(rest) => Some(rest),
            Err(why) => return Outcome::Unknown(format!("{seen}, but {why}")).into(),
        },
        None => None,
    };
    let outcome = status(condition, &expected.status, seen);
    Judgement { outcome, lasts }
}

/// For how long the heartbeat of a condition is young enough.
fn rest(
    condition: &v1::NodeCondition,
    max_age: Duration,
    clock: Timestamp,
) -> Result<Duration, String> {
    let Some(heartbeat) = &condition.last_heartbeat_time else {
        return Err("has no lastHeartbeatTime: maxAge is for conditions that have one".into());
    };
    let heartbeat = heartbeat.0;
    // One from the future is as far from the truth as one from the past.
    let distance = clock.duration_since(heartbeat).unsigned_abs();
    if distance >= max_age {
        return Err(format!(
            "its last heartbeat is of {heartbeat:.0}, and now is {clock:.0}: maxAge allows {}",
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
    let told = [&condition.reason, &condition.message];
    let told = told.into_iter().flatten().filter(|text| !text.is_empty());
    let told = told.map(|text| excerpt(text));
    let parts: Vec<_> = std::iter::once(format!("{seen}, not {expected}"))
        .chain(told)
        .collect();
    Outcome::Closed(parts.join(": "))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn node(status: &Value) -> NodeView {
        let metadata = json!({"name": "node", "uid": "1", "resourceVersion": "1"});
        serde_json::from_value(json!({"metadata": metadata, "status": status})).unwrap()
    }

    #[test]
    fn a_resource_is_there_if_its_quantity_is_above_zero() {
        let expected = Allocatable {
            resource: "nvidia.com/gpu".into(),
        };
        let look = |quantity: &str| {
            let other = "nvidia.com/gpu.shared";
            let status = json!({"allocatable": {"nvidia.com/gpu": quantity, other: "7"}});
            allocatable(&expected, &node(&status))
        };
        for quantity in ["", "0", "0k", "0Ki", "0.0", "0e3", "-1", "-0", "+0m"] {
            let seen = format!("allocatable nvidia.com/gpu is {quantity}");
            assert_eq!(look(quantity), Outcome::Closed(seen));
        }
        for quantity in [
            "1", "8", "500m", "0.5", ".5", "1e3", "1E3", "10", "1E", "+2", "107374Ki",
        ] {
            let seen = format!("allocatable nvidia.com/gpu is {quantity}");
            assert_eq!(look(quantity), Outcome::Open(seen));
        }
        for status in [
            json!({}),
            json!({"allocatable": null}),
            json!({"allocatable": {"nvidia.com/gpu.shared": "1"}, "capacity": {"nvidia.com/gpu": "1"}}),
        ] {
            let missing = Outcome::Closed("the Node has no allocatable nvidia.com/gpu".into());
            assert_eq!(allocatable(&expected, &node(&status)), missing, "{status}");
        }
    }

    fn look(wanted: &str, conditions: &Value) -> Outcome {
        let expected = NodeCondition {
            kind: "Ready".into(),
            status: wanted.into(),
            max_age: None,
        };
        let judgement = condition(
            &expected,
            &node(&json!({"conditions": conditions})),
            &SinceBoot::default(),
            Timestamp::UNIX_EPOCH,
        );
        assert_eq!(judgement.lasts, None, "unless it has a maxAge");
        judgement.outcome
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
            assert_eq!(look(wanted, &conditions), expected, "{conditions}");
        }
        let long = look("True", &ready("False", "R", &"x".repeat(10_000)));
        assert!(long.message().chars().count() < 300, "{long:?}");
    }

    #[test]
    fn what_was_written_before_the_boot_is_unknown_whatever_it_says() {
        let conditions = json!([{"type": "Ready", "status": "True"}]);
        for (kind, wanted, expected) in [
            (
                "Ready",
                "True",
                Outcome::Unknown("condition Ready is True, but its last write is of old".into()),
            ),
            (
                "Ready",
                "False",
                Outcome::Unknown("condition Ready is True, but its last write is of old".into()),
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
            let since_boot = SinceBoot {
                leftovers: [("Ready".to_owned(), "of old".to_owned())].into(),
                ..SinceBoot::default()
            };
            let node = node(&json!({"conditions": conditions}));
            let seen = condition(&expected_condition, &node, &since_boot, Timestamp::now());
            assert_eq!((seen.outcome, seen.lasts), (expected, None));
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
        let look = |status: &str, heartbeat: Value| {
            let conditions =
                json!([{"type": "Ready", "status": status, "lastHeartbeatTime": heartbeat}]);
            let node = node(&json!({"conditions": conditions}));
            let seen = condition(&expected, &node, &SinceBoot::default(), clock);
            (seen.outcome, seen.lasts)
        };
        let open = || Outcome::Open("condition Ready is True".into());
        let lasts = |seconds| Some(Duration::from_secs(seconds));
        let at = |time: &str| json!(format!("2026-03-01T{time}Z"));
        assert_eq!(look("True", at("12:00:00")), (open(), lasts(600)));
        assert_eq!(look("True", at("11:50:01")), (open(), lasts(1)));
        assert_eq!(look("True", at("12:00:05")), (open(), lasts(605)));
        let closed = Outcome::Closed("condition Ready is False, not True".into());
        assert_eq!(look("False", at("11:55:00")), (closed, lasts(300)));
        for time in ["11:50:00", "12:10:00"] {
            let reason = format!(
                "condition Ready is True, but its last heartbeat is of 2026-03-01T{time}Z, and now is \
                 2026-03-01T12:00:00Z: maxAge allows 10m"
            );
            assert_eq!(look("True", at(time)), (Outcome::Unknown(reason), None));
        }
        let (without, lasts) = look("True", Value::Null);
        let reason = without.message().contains("has no lastHeartbeatTime");
        assert!(
            without.is_unknown() && reason && lasts.is_none(),
            "{without:?}"
        );
    }
}
