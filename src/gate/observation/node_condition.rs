//! `nodeCondition`: a condition of the Node.

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1;

use super::Judgement;
use crate::config::{NodeCondition, shown_duration};
use crate::gate::freshness::last_heartbeat;
use crate::gate::{NodeFreshness, Outcome};
use crate::node::view::NodeView;
use crate::text::excerpt;

/// `clock` is the time now.
pub(super) fn judge(
    expected: &NodeCondition,
    node: &NodeView,
    freshness: &NodeFreshness,
    clock: Timestamp,
) -> Judgement {
    let kind = &expected.kind;
    let mut conditions = node.conditions.iter();
    let Some(condition) = conditions.find(|condition| condition.type_ == *kind) else {
        return absent(expected, node).into();
    };
    let seen = format!("condition {kind} is {}", excerpt(&condition.status));
    if let Some(when) = freshness.stale_conditions.get(kind) {
        return Outcome::Unknown(format!("{seen}, but its last write is {when}")).into();
    }
    let valid_for = expected.max_age.map(|age| valid_for(condition, age, clock));
    match valid_for.transpose() {
        Err(why) => Outcome::Unknown(format!("{seen}, but {why}")).into(),
        Ok(valid_for) => Judgement {
            outcome: status(condition, &expected.status, seen),
            valid_for,
        },
    }
}

/// That a condition is absent shows nothing before the kubelet of this boot has written its own. A Node that another
/// program has created has none, and nothing shows whether its kubelet runs.
fn absent(expected: &NodeCondition, node: &NodeView) -> Outcome {
    let seen = format!("the Node has no condition {}", expected.kind);
    if !expected.missing_is_false {
        return Outcome::Closed(seen);
    }
    if last_heartbeat(&node.conditions).is_none() {
        return Outcome::Unknown(format!(
            "{seen}, but the kubelet has not written its own conditions either"
        ));
    }
    // No other status can be expected beside `missing`.
    Outcome::Open(format!("{seen}, which counts as {}", expected.status))
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
mod tests;
