use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Taint;

use super::*;
use crate::config::DeadlineAction;
use crate::gate::State;
use crate::gate::run::GateStatus;
use crate::node::patch::Action;
use crate::node::writes::Denied;
use crate::rule::{Notification, RuleEvent};
use crate::status::{ApiStatus, ConfigurationStatus, NodeStatus, PolicyStatus, RuleStatus};

fn status(rules: &[&str]) -> Status {
    let since = Timestamp::UNIX_EPOCH;
    let rule = |name: &&str| RuleStatus {
        name: (*name).to_owned(),
        taint: "t".into(),
        retaint_taint: None,
        decision: "waiting",
        meaning: "",
        done: false,
        since,
        overdue: false,
        dry_run: false,
        gates: vec![GateStatus {
            name: "gate".into(),
            state: State::Closed,
            message: String::new(),
            since,
        }],
        last_removal: None,
        last_put_back: None,
        denied: None,
        write_failure: None,
        publish_failure: None,
    };
    Status {
        version: "",
        node: NodeStatus {
            name: "node".into(),
            seen: true,
            resource_version: None,
        },
        configuration: ConfigurationStatus {
            source: "file".into(),
            sha256: None,
            loaded: since,
            reloads: 0,
            failed_reloads: 0,
            failing: false,
            last_failure: None,
        },
        api: ApiStatus::default(),
        policy: PolicyStatus {
            state: "held",
            message: String::new(),
        },
        waits_for: None,
        rules: rules.iter().map(rule).collect(),
        left_taints: Vec::new(),
    }
}

struct Scene {
    status: watch::Sender<Option<Status>>,
    counters: Counters,
    metrics: Metrics,
}

impl Scene {
    fn new(rules: &[&str]) -> Self {
        let (sender, receiver) = watch::channel(Some(status(rules)));
        let counters = Counters::default();
        for rule in rules {
            counters.begin(rule);
        }
        Self {
            status: sender,
            metrics: Metrics::new(&Traffic::default(), receiver, counters.clone()),
            counters,
        }
    }

    fn count(&self, rule: &str, event: RuleEvent) {
        let (rule, taint) = (rule.to_owned(), "t".to_owned());
        self.counters.count(&Notification {
            rule,
            taint,
            dry_run: false,
            node_uid: None,
            waits_for: String::new(),
            last_gate: None,
            event,
        });
    }

    /// Each series with its value.
    fn series(&self) -> BTreeMap<String, String> {
        let page = self.metrics.page().unwrap();
        let lines = page.lines().filter(|line| !line.starts_with('#'));
        let series = lines.map(|line| line.rsplit_once(' ').unwrap());
        series
            .map(|(series, value)| (series.to_owned(), value.to_owned()))
            .collect()
    }

    /// The series that are not 0, without those whose values are no counts.
    fn counted(&self) -> Vec<String> {
        let series = self.series().into_iter();
        series
            .filter(|(name, value)| value != "0" && name.contains("rule=\"a\""))
            .filter(|(name, _)| {
                ["_total{", "_count{"]
                    .iter()
                    .any(|kind| name.contains(kind))
            })
            .map(|(name, _)| name.replace("{rule=\"a\"}", ""))
            .collect()
    }
}

#[test]
fn each_event_of_a_rule_increases_its_counter() {
    let second = Some(Duration::from_secs(1));
    let removed = |since_ready| RuleEvent::Removed {
        taint: Taint::default(),
        since_seen: second,
        since_ready,
    };
    let denied = RuleEvent::Denied(Denied {
        action: Action::Remove,
        taint: Taint::default(),
        message: "no".into(),
        first: true,
        decided: true,
    });
    let deadline = RuleEvent::Deadline {
        after: Duration::from_secs(1),
        action: DeadlineAction::Keep,
    };
    let put_back = RuleEvent::PutBack;
    let unanswered = RuleEvent::RemovedUnanswered { since_seen: second };
    let removals = "untaint_rule_removals_total";
    let seen = "untaint_rule_seen_to_removed_seconds_count";
    let ready = "untaint_rule_ready_to_removed_seconds_count";
    let others = "untaint_rule_removals_by_others_total";
    let table: [(RuleEvent, &[&str]); 11] = [
        (removed(second), &[ready, removals, seen]),
        (removed(None), &[removals, seen]),
        (unanswered, &[removals, seen]),
        (RuleEvent::RemovedByOther { ready: false }, &[others]),
        (RuleEvent::RemovedByOther { ready: true }, &[]),
        (denied, &["untaint_rule_denials_total"]),
        (RuleEvent::Fight, &["untaint_rule_fights_total"]),
        (deadline, &["untaint_rule_deadlines_total"]),
        (put_back, &["untaint_rule_put_backs_total"]),
        (RuleEvent::Tainted, &[]),
        (
            RuleEvent::Undone {
                action: Action::PutBack,
                taint: Taint::default(),
            },
            &[],
        ),
    ];
    for (what, expected) in table {
        let scene = Scene::new(&["a", "b"]);
        scene.count("a", what.clone());
        assert_eq!(scene.counted(), expected, "{what:?}");
    }
}

#[test]
fn a_rule_that_disappears_takes_its_series_along_and_a_new_one_starts_with_all_of_them() {
    let scene = Scene::new(&["a"]);
    scene.count("a", RuleEvent::Fight);
    let of_a = scene.series();
    assert_eq!(of_a["untaint_rule_fights_total{rule=\"a\"}"], "1");

    scene.counters.forget("a");
    scene.counters.begin("b");
    scene.status.send(Some(status(&["b"]))).unwrap();
    let of_b = scene.series();
    let renamed = of_a.keys().map(|name| name.replace("\"a\"", "\"b\""));
    assert!(renamed.eq(of_b.keys().cloned()), "{of_b:#?}");

    scene.count("a", RuleEvent::Fight);
    assert_eq!(scene.series(), of_b, "nobody follows it");
    scene.counters.forget("b");
    scene.counters.begin("a");
    scene.status.send(Some(status(&["a"]))).unwrap();
    assert_eq!(scene.series()["untaint_rule_fights_total{rule=\"a\"}"], "0");
}

#[test]
fn before_anything_is_known_of_the_rules_there_is_a_page_without_them() {
    let (_, nothing) = watch::channel(None);
    let metrics = Metrics::new(&Traffic::default(), nothing, Counters::default());
    let page = metrics.page().unwrap();
    assert!(page.contains("untaint_build_info") && !page.contains("_rule_"));
}
