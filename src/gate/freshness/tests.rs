use serde_json::{Value, json};

use super::*;

const THIS: &str = "e0d025f9-f289-46ea-ae56-e2309a1f3aa9";
const OTHER: &str = "11111111-f289-46ea-ae56-e2309a1f3aa9";
const BEFORE: &str = "2026-03-01T11:59:59Z";
const AT_THE_BOOT: &str = "2026-03-01T12:00:00Z";
const SINCE: &str = "2026-03-01T12:04:00Z";
const TO_COME: &str = "2026-03-01T20:00:00Z";
const MINUTE: Duration = Duration::from_mins(1);

fn uptime() -> Uptime {
    Uptime {
        boot: AT_THE_BOOT.parse().unwrap(),
        now: "2026-03-01T12:05:00Z".parse().unwrap(),
    }
}

fn node(version: u64, boot_id: &str, conditions: &Value) -> NodeView {
    serde_json::from_value(json!({
        "metadata": {"name": "node", "uid": "u", "resourceVersion": version.to_string()},
        "status": {"nodeInfo": {"bootID": boot_id}, "conditions": conditions},
    }))
    .unwrap()
}

fn ready(heartbeat: &str) -> Value {
    json!({"type": "Ready", "status": "True", "lastHeartbeatTime": heartbeat})
}

/// With Ready written at this time.
fn beating(version: u64, boot_id: &str, heartbeat: &str) -> NodeView {
    node(version, boot_id, &json!([ready(heartbeat)]))
}

fn tracker() -> FreshnessTracker {
    FreshnessTracker::new(Some(THIS.into()))
}

fn first_observation(node: &NodeView) -> NodeFreshness {
    tracker().track(node, Some(uptime()), Instant::now())
}

#[test]
fn the_kubelet_has_reported_if_neither_boot_id_nor_heartbeat_is_of_another_boot() {
    for (boot_id, heartbeat, expected) in [
        (THIS, Some(SINCE), true),
        (THIS, Some(AT_THE_BOOT), true),
        (THIS, None, true),
        (THIS, Some(BEFORE), false),
        (THIS, Some(TO_COME), false),
        (OTHER, Some(SINCE), false),
        (OTHER, Some(BEFORE), false),
        (OTHER, None, false),
        ("", Some(SINCE), true),
        ("", Some(BEFORE), false),
        // Nothing to judge by.
        ("", None, true),
        ("none", None, true),
    ] {
        let conditions: Vec<_> = heartbeat.into_iter().map(ready).collect();
        let seen = first_observation(&node(1, boot_id, &json!(conditions)));
        let case = format!("{boot_id} {heartbeat:?}");
        assert_eq!(seen.no_report.is_none(), expected, "{case}: {seen:?}");
        assert!(!seen.pods_synced, "{case}");
    }
    let upper = beating(1, &THIS.to_uppercase(), SINCE);
    assert_eq!(first_observation(&upper).no_report, None);
}

#[test]
fn the_reason_has_both_boots_or_both_times() {
    let reason = |node: &NodeView| first_observation(node).no_report.unwrap();
    let head = "the kubelet has not reported since this boot";
    assert_eq!(
        reason(&beating(1, OTHER, SINCE)),
        format!(
            "{head}: the Node has boot ID {OTHER}, and this boot has {THIS}; its last heartbeat is from {SINCE}, and the boot was \
             at {AT_THE_BOOT}"
        )
    );
    assert_eq!(
        reason(&beating(1, THIS, BEFORE)),
        format!("{head}: its last heartbeat is from {BEFORE}, before the boot at {AT_THE_BOOT}")
    );
    assert_eq!(
        reason(&beating(1, THIS, TO_COME)),
        format!(
            "{head}: its last heartbeat is from {TO_COME}, which is in the future: it is now 2026-03-01T12:05:00Z, and the boot was \
             at {AT_THE_BOOT}"
        )
    );
    let without_clock = tracker().track(&beating(1, THIS, SINCE), None, Instant::now());
    assert_eq!(
        without_clock.no_report.unwrap(),
        format!("{head}: its last heartbeat is from {SINCE}, and the boot time is unknown")
    );
}

/// The node controller writes Ready when a kubelet is silent; others write conditions of their own.
#[test]
fn only_the_heartbeats_of_the_kubelets_conditions_are_its_reports() {
    let marked = json!({"type": "Ready", "status": "Unknown", "lastHeartbeatTime": BEFORE, "lastTransitionTime": SINCE});
    let of_others =
        json!({"type": "NetworkUnavailable", "status": "False", "lastHeartbeatTime": SINCE});
    let seen = first_observation(&node(1, THIS, &json!([marked, of_others])));
    assert!(seen.no_report.is_some());
    let pressure = json!({"type": "PIDPressure", "status": "False", "lastHeartbeatTime": SINCE});
    let seen = first_observation(&node(1, THIS, &json!([marked, pressure])));
    assert_eq!(seen.no_report, None);
}

#[test]
fn an_observed_report_counts_with_any_time_and_any_boot_id() {
    for boot_id in [THIS, OTHER, ""] {
        let (mut tracker, now) = (tracker(), Instant::now());
        let mut reported =
            |node: &NodeView| tracker.track(node, Some(uptime()), now).no_report.is_none();
        assert!(!reported(&node(1, boot_id, &json!([]))) || boot_id != OTHER);
        // That it appears is no second report.
        assert!(!reported(&beating(2, boot_id, BEFORE)), "{boot_id}");
        assert!(!reported(&beating(3, boot_id, BEFORE)), "{boot_id}");
        assert!(
            reported(&beating(4, boot_id, "2026-03-01T11:00:00Z")),
            "{boot_id}"
        );
        assert!(
            reported(&beating(5, boot_id, "2026-03-01T11:00:00Z")),
            "{boot_id}"
        );
    }
}

#[test]
fn evidence_stays_evidence_when_the_clock_is_set() {
    let (mut tracker, now) = (tracker(), Instant::now());
    let other = json!({"type": "example.com/Ready", "status": "True", "lastTransitionTime": SINCE});
    let node = node(1, THIS, &json!([ready(SINCE), other]));
    let expected = NodeFreshness::default();
    assert_eq!(tracker.track(&node, Some(uptime()), now), expected);
    let set = Uptime {
        boot: TO_COME.parse().unwrap(),
        now: "2026-03-01T20:05:00Z".parse().unwrap(),
    };
    assert_eq!(tracker.track(&node, Some(set), now), expected);
    assert_ne!(
        FreshnessTracker::new(None).track(&node, Some(set), now),
        expected
    );
}

#[test]
fn nothing_is_known_of_another_node_or_of_one_that_a_backup_has_replaced() {
    let (mut tracker, now) = (tracker(), Instant::now());
    let mut reported =
        |node: &NodeView| tracker.track(node, Some(uptime()), now).no_report.is_none();
    assert!(reported(&beating(10, THIS, SINCE)));
    assert!(!reported(&beating(9, THIS, BEFORE)));
    assert!(reported(&beating(11, THIS, SINCE)));
    let mut another = beating(12, THIS, BEFORE);
    another.metadata.uid = "another".into();
    assert!(!reported(&another));
}

#[test]
fn a_condition_is_as_new_as_its_last_write() {
    for (heartbeat, transition, expected) in [
        (None, None, None),
        (Some(SINCE), Some(BEFORE), None),
        (Some(BEFORE), Some(SINCE), None),
        (None, Some(SINCE), None),
        (None, Some(BEFORE), Some(BEFORE)),
        (Some("2020-01-01T00:00:00Z"), Some(BEFORE), Some(BEFORE)),
        (Some(TO_COME), None, Some(TO_COME)),
    ] {
        let kind = "example.com/Ready";
        let other = json!({"type": kind, "status": "True", "lastHeartbeatTime": heartbeat, "lastTransitionTime": transition});
        let seen = first_observation(&node(1, THIS, &json!([ready(SINCE), other])));
        let stale = seen.stale_conditions.get(kind);
        let time = stale.and_then(|when| when.strip_prefix("from ")?.split(',').next());
        assert_eq!(time, expected, "{heartbeat:?} {transition:?}");
        assert_eq!(seen.stale_conditions.len(), usize::from(expected.is_some()));
    }
}

#[test]
fn pods_are_synced_once_the_kubelet_has_gone_on_reporting_for_ten_minutes() {
    let start = Instant::now();
    let at = |minutes: u32| start + minutes * MINUTE;
    let mut tracker = tracker();
    let mut synced = |node: &NodeView, now| tracker.track(node, Some(uptime()), now).pods_synced;
    assert!(!synced(&beating(1, THIS, BEFORE), at(0)));
    assert!(!synced(&beating(2, THIS, SINCE), at(5)));
    assert!(!synced(&beating(3, THIS, "2026-03-01T12:05:00Z"), at(14)));
    assert!(synced(&beating(4, THIS, "2026-03-01T12:05:00Z"), at(15)));

    let silent = beating(1, THIS, SINCE);
    let mut tracker = FreshnessTracker::new(None);
    for minutes in [0, 60] {
        assert!(
            !tracker
                .track(&silent, Some(uptime()), at(minutes))
                .pods_synced,
            "it has reported once"
        );
    }
    let without = node(1, THIS, &json!([]));
    let mut tracker = FreshnessTracker::new(None);
    for minutes in [0, 60] {
        assert!(
            !tracker
                .track(&without, Some(uptime()), at(minutes))
                .pods_synced,
            "no heartbeat shows that it runs"
        );
    }
}
