use std::time::Duration;

use k8s_openapi::api::core::v1::Taint;

use super::*;
use crate::node::writes::Denied;

fn notification(event: RuleEvent) -> Notification {
    Notification {
        rule: "cni".into(),
        taint: "k".into(),
        dry_run: false,
        node_uid: Some("u".into()),
        waits_for: "agent: 503".into(),
        last_gate: None,
        event,
    }
}

fn taint(value: Option<&str>) -> Taint {
    Taint {
        key: "k".into(),
        value: value.map(Into::into),
        effect: "NoSchedule".into(),
        time_added: None,
    }
}

fn deadline(action: DeadlineAction) -> RuleEvent {
    RuleEvent::Deadline {
        after: Duration::from_mins(10),
        action,
    }
}

#[test]
fn each_notification_with_an_event_describes_what_happened() {
    let removed = |value, since_seen| RuleEvent::Removed {
        taint: taint(value),
        since_seen,
        since_ready: None,
    };
    let table = [
        (
            removed(None, Some(Duration::from_millis(12_345))),
            Reason::TaintRemoved,
            "Removed the taint k:NoSchedule (rule cni) after 12.3 s",
        ),
        (
            removed(Some("v"), None),
            Reason::TaintRemoved,
            "Removed the taint k=v:NoSchedule (rule cni)",
        ),
        (
            RuleEvent::RemovedUnanswered {
                since_seen: Some(Duration::from_millis(12_345)),
            },
            Reason::TaintRemoved,
            "The taint k is gone (rule cni) after 12.3 s; the server did not answer the removal",
        ),
        (
            RuleEvent::RemovedByOther { ready: false },
            Reason::TaintRemovedByOther,
            "Another program removed the taint k before rule cni was ready",
        ),
        (
            RuleEvent::LongWait,
            Reason::RemovalWaiting,
            "The taint k is still there (rule cni): agent: 503",
        ),
        (
            RuleEvent::PutBack,
            Reason::TaintPutBack,
            "Put the taint k back (rule cni): agent: 503",
        ),
        (
            RuleEvent::Denied(Denied {
                action: Action::PutBack,
                taint: taint(None),
                message: "403: no".into(),
                first: true,
                decided: true,
            }),
            Reason::PutBackDenied,
            "The server refused to put back the taint k:NoSchedule (rule cni): 403: no",
        ),
        (
            RuleEvent::Denied(Denied {
                action: Action::Remove,
                taint: taint(None),
                message: "403: no".into(),
                first: true,
                decided: true,
            }),
            Reason::RemovalDenied,
            "The server refused to remove the taint k:NoSchedule (rule cni): 403: no",
        ),
        (
            deadline(DeadlineAction::Keep),
            Reason::DeadlineExceeded,
            "The taint k has been there for 600 s; it stays until every gate is open (rule cni): agent: 503",
        ),
        (
            deadline(DeadlineAction::Remove),
            Reason::DeadlineExceeded,
            "The taint k has been there for 600 s; untaint removes it anyway (rule cni): agent: 503",
        ),
        (
            RuleEvent::Fight,
            Reason::TaintKeepsComingBack,
            "Another program keeps putting the taint k back; untaint now removes it less often (rule cni)",
        ),
    ];
    for reason in Reason::ALL
        .into_iter()
        .filter(|it| *it != Reason::ReloadFailed)
    {
        assert!(
            table.iter().any(|(_, has_event, _)| *has_event == reason),
            "{reason:?}"
        );
    }
    for (what, reason, note) in table {
        let event = event(&notification(what)).unwrap();
        assert_eq!(event.note.as_deref(), Some(note));
        let (reason, kind, action) = reason.fields();
        assert_eq!(event.reason, reason);
        assert_eq!(event.type_, kind);
        assert_eq!(event.action, action);
    }
}

#[test]
fn a_removal_has_its_wait_and_the_last_gate_and_short_waits_are_repetitions() {
    let note = |waited, last_gate: Option<&str>| {
        let removed = RuleEvent::Removed {
            taint: taint(None),
            since_seen: Some(Duration::from_millis(waited)),
            since_ready: None,
        };
        let notification = Notification {
            last_gate: last_gate.map(Into::into),
            ..notification(removed)
        };
        event(&notification).unwrap().note.unwrap()
    };
    for (waited, words) in [
        (0, "in less than 1 s"),
        (999, "in less than 1 s"),
        (1_000, "after 1.0 s"),
        (12_345, "after 12.3 s"),
        (3_600_000, "after 3600.0 s"),
    ] {
        let start = format!("Removed the taint k:NoSchedule (rule cni) {words}");
        assert_eq!(note(waited, None), start);
        let gate = "; gate \"agent\" was the last to open";
        assert_eq!(note(waited, Some("agent")), start + gate);
    }
}

#[test]
fn expected_changes_changes_reported_elsewhere_and_dry_runs_have_no_event() {
    for what in [
        RuleEvent::Tainted,
        RuleEvent::RemovedByOther { ready: true },
        RuleEvent::Undone {
            action: Action::PutBack,
            taint: taint(None),
        },
    ] {
        assert!(event(&notification(what.clone())).is_none(), "{what:?}");
    }
    let dry_run = Notification {
        dry_run: true,
        ..notification(RuleEvent::Fight)
    };
    assert!(event(&dry_run).is_none());
}

/// The messages of gates and servers come from outside.
#[test]
fn a_hostile_reason_is_cut_and_clean() {
    for text in ["\u{1b}[31m\n\r\0\u{202e}x".repeat(500), "😀ö".repeat(5000)] {
        let notification = Notification {
            waits_for: text,
            ..notification(RuleEvent::LongWait)
        };
        let note = event(&notification).unwrap().note.unwrap();
        assert!(note.len() <= 1024 && note.len() > 1000, "{}", note.len());
        assert!(note.ends_with('…'), "{note}");
        let clean = |c: char| !c.is_control() && c != '\u{202e}';
        assert!(note.chars().all(clean), "{note}");
        assert!(note.starts_with("The taint k is still there (rule cni): "));
    }
}

#[test]
fn a_bad_file_has_an_event_with_all_problems_in_one_line() {
    let event = bad_file("config.yaml:3:1: rules: is missing\nconfig.yaml:4:1: x: unknown field");
    assert_eq!(event.reason, "ReloadFailed");
    assert_eq!(event.type_, EventType::Warning);
    assert_eq!(
        event.note.as_deref(),
        Some(
            "The configuration file is invalid; untaint continues with the active configuration: \
             config.yaml:3:1: rules: is missing; config.yaml:4:1: x: unknown field"
        )
    );
}
