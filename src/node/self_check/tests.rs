use serde_json::json;

use super::*;

const DENIED: &str = "nodes \"n\" is forbidden: ValidatingAdmissionPolicy 'untaint' with binding 'untaint' denied request: untaint: taints";

fn node(version: &str, taints: &[(&str, &str)]) -> NodeView {
    let taints: Vec<_> = taints
        .iter()
        .map(|(key, effect)| json!({"key": key, "effect": effect}))
        .collect();
    let node = json!({
        "metadata": {"name": "n", "uid": "u", "resourceVersion": version},
        "spec": {"taints": taints},
    });
    serde_json::from_value(node).unwrap()
}

fn refused(code: u16, message: &str) -> Answer {
    Err(ApiError::Refused {
        code,
        message: message.into(),
        detailed: true,
        retry_after: None,
    })
}

fn own_taint() -> TaintMatcher {
    TaintMatcher {
        key: KEY.into(),
        value: None,
        effect: Some(EFFECT),
    }
}

fn tried() -> NodeView {
    node("7", &[("a", "NoSchedule"), (KEY, "PreferNoSchedule")])
}

fn due(now: Instant, check: &mut SelfCheck) -> DryRun {
    match check.next(now, &node("7", &[("a", "NoSchedule")])) {
        Next::Send(dry_run) => dry_run,
        Next::Wait(until) => panic!("not before {until:?}"),
    }
}

#[test]
fn the_dry_run_adds_the_mildest_taint_to_the_node_as_it_is_known() {
    let add = |path: &str, value| json!({"op": "add", "path": path, "value": value});
    let test = |path: &str, value| json!({"op": "test", "path": path, "value": value});
    let taint = json!({"key": "untaint.dev/never", "effect": "PreferNoSchedule"});
    let pins = [
        test("/metadata/resourceVersion", json!("7")),
        test("/metadata/uid", json!("u")),
    ];
    let with = dry_run(&node("7", &[("a", "NoSchedule")])).unwrap();
    let expected = json!([pins[0], pins[1], add("/spec/taints/-", taint.clone())]);
    assert_eq!(json!(with.operations), expected);
    let without = dry_run(&node("7", &[])).unwrap();
    let none = test("/spec/taints", json!(null));
    let expected = json!([pins[0], pins[1], none, add("/spec/taints", json!([taint]))]);
    assert_eq!(json!(without.operations), expected);
    assert_eq!(dry_run(&node("7", &[(KEY, "PreferNoSchedule")])), None);
}

#[test]
fn only_a_policy_that_refuses_holds_the_account() {
    let dry_run = dry_run(&node("7", &[("a", "NoSchedule")])).unwrap();
    let held = |answer| matches!(judge(&dry_run, &answer), AccountState::Held(_));
    assert!(held(refused(422, DENIED)));
    assert!(held(refused(
        403,
        &DENIED.replace(" with binding 'untaint'", "")
    )));
    for (code, message) in [
        (
            403,
            r#"nodes "n" is forbidden: User "u" cannot patch resource "nodes" in API group "" at the cluster scope"#,
        ),
        (
            403,
            r#"nodes "n" is forbidden: is not allowed to modify taints"#,
        ),
        // Another's policy, and one that cannot be evaluated.
        (
            422,
            &DENIED.replace("untaint: ", "only administrators untaint: "),
        ),
        (
            403,
            &DENIED.replace(
                "untaint: taints",
                "failed to configure binding: no params found",
            ),
        ),
        (400, r#"admission webhook "w" does not support dry run"#),
        (403, r#"admission webhook "w" denied the request: no"#),
        (
            422,
            "the server rejected our request due to an error in our request",
        ),
        (
            422,
            r#"Node "n" is invalid: metadata.taints[1]: Duplicate value"#,
        ),
        (503, "try later"),
    ] {
        let found = judge(&dry_run, &refused(code, message));
        assert!(
            matches!(found, AccountState::Unknown(words) if words.contains(message)),
            "{message}"
        );
    }
    assert_eq!(judge(&dry_run, &Ok(tried())), AccountState::NotHeld);
    let found = judge(&dry_run, &Ok(node("7", &[("a", "NoSchedule")])));
    assert!(
        matches!(found, AccountState::Unknown(_)),
        "somebody mutates the request"
    );
    let found = judge(&dry_run, &Ok(node("8", &[(KEY, "PreferNoSchedule")])));
    assert_eq!(found, AccountState::DryRunIgnored(own_taint()));
}

#[test]
fn a_policy_that_holds_is_reported_once_and_checked_every_hour() {
    let now = Instant::now();
    let mut check = SelfCheck::new(now, false);
    let dry_run = due(now, &mut check);
    let words = &DENIED[DENIED.find("Validating").unwrap()..];
    let reported = check.answered(now, &dry_run, &refused(422, DENIED));
    assert_eq!(reported, Some(AccountState::Held(words.into())));
    for answer in [
        refused(422, DENIED),
        refused(503, "later"),
        refused(422, DENIED),
    ] {
        assert_eq!(check.account(), &AccountState::Held(words.into()));
        assert_eq!(check.answered(now, &dry_run, &answer), None);
    }
    let wait = check.due_at.unwrap() - now;
    assert!(
        HELD_PERIOD <= wait && wait <= HELD_PERIOD * 3 / 2,
        "{wait:?}"
    );
}

#[test]
fn a_policy_that_is_deleted_later_is_reported_again_at_the_second_dry_run() {
    let now = Instant::now();
    let mut check = SelfCheck::new(now, false);
    let dry_run = due(now, &mut check);
    for _ in 0..2 {
        let held = check.answered(now, &dry_run, &refused(422, DENIED));
        assert!(matches!(held, Some(AccountState::Held(_))), "{held:?}");
        assert_eq!(check.answered(now, &dry_run, &Ok(tried())), None);
        assert_eq!(check.account(), &AccountState::NotHeld);
        assert_eq!(
            check.answered(now, &dry_run, &Ok(tried())),
            Some(AccountState::NotHeld)
        );
    }
}

#[test]
fn a_missing_policy_is_reported_once_at_the_second_dry_run_and_checked_every_few_minutes() {
    let now = Instant::now();
    let mut check = SelfCheck::new(now, false);
    let dry_run = due(now, &mut check);
    assert_eq!(
        check.answered(now, &dry_run, &Ok(tried())),
        None,
        "it may have been applied just now"
    );
    assert_eq!(check.account(), &AccountState::NotHeld, "known at once");
    let wait = check.due_at.unwrap() - now;
    assert!(SECOND_RUN <= wait && wait <= SECOND_RUN * 3 / 2, "{wait:?}");
    assert_eq!(check.answered(now, &dry_run, &refused(503, "later")), None);
    assert_eq!(
        check.account(),
        &AccountState::NotHeld,
        "nothing else is known"
    );
    assert_eq!(
        check.answered(now, &dry_run, &Ok(tried())),
        Some(AccountState::NotHeld)
    );
    for _ in 0..3 {
        let wait = check.due_at.unwrap() - now;
        assert!(PERIOD <= wait && wait <= PERIOD * 3 / 2, "{wait:?}");
        assert_eq!(check.answered(now, &dry_run, &Ok(tried())), None);
    }
    let reported = check.answered(now, &dry_run, &refused(422, DENIED));
    assert!(
        matches!(reported, Some(AccountState::Held(_))),
        "{reported:?}"
    );
}

#[test]
fn run_once_reports_a_missing_policy_at_the_first_dry_run() {
    let now = Instant::now();
    let mut check = SelfCheck::new(now, true);
    let dry_run = due(now, &mut check);
    assert_eq!(
        check.answered(now, &dry_run, &Ok(tried())),
        Some(AccountState::NotHeld)
    );
}

#[test]
fn without_a_result_dry_runs_become_rarer_and_respect_retry_after() {
    let now = Instant::now();
    let mut check = SelfCheck::new(now, false);
    let dry_run = due(now, &mut check);
    for _ in 0..20 {
        check.answered(now, &dry_run, &refused(503, "later"));
    }
    assert_eq!(check.account(), &AccountState::Unknown("503: later".into()));
    let wait = check.due_at.unwrap() - now;
    assert!(PERIOD / 2 <= wait && wait <= PERIOD, "{wait:?}");
    let minutes = Duration::from_mins(20);
    let busy = ApiError::Refused {
        code: 429,
        message: String::new(),
        detailed: false,
        retry_after: Some(minutes),
    };
    check.answered(now, &dry_run, &Err(busy));
    assert!(check.due_at.unwrap() - now >= minutes);
    let due_at = check.due_at.unwrap();
    let next = check.next(due_at, &node("8", &[(KEY, "PreferNoSchedule")]));
    assert!(matches!(next, Next::Wait(Some(at)) if at > due_at));
}

#[test]
fn after_a_server_carries_out_a_dry_run_its_taint_is_removed_and_there_is_no_other_dry_run() {
    let now = Instant::now();
    let mut check = SelfCheck::new(now, false);
    let dry_run = due(now, &mut check);
    let tainted = node("8", &[("a", "NoSchedule"), (KEY, "PreferNoSchedule")]);
    let reported = check.answered(now, &dry_run, &Ok(tainted.clone()));
    assert_eq!(
        (reported, check.due_at),
        (Some(AccountState::DryRunIgnored(own_taint())), None)
    );
    let matches: Vec<_> = tainted
        .taints
        .iter()
        .map(|taint| check.taint_to_remove().unwrap().matches(taint))
        .collect();
    assert_eq!(matches, [false, true]);
}
