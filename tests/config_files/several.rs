//! Several files that are one configuration.

use untaint::config::{self, SourceFile};

const HEAD: &str = "apiVersion: untaint/v1alpha1\nkind: UntaintConfiguration\n";

/// What is wrong with files that have these texts after the same two first lines. The files are `a.yaml`, `b.yaml`, …
fn wrong(texts: &[&str]) -> Vec<String> {
    let named = ('a'..).zip(texts);
    let files = named.map(|(name, text)| SourceFile {
        name: format!("{name}.yaml"),
        text: format!("{HEAD}{text}"),
    });
    match config::parse_files(&files.collect::<Vec<_>>()) {
        Ok(_) => Vec::new(),
        Err(problems) => problems.to_string().lines().map(str::to_owned).collect(),
    }
}

#[test]
fn rules_of_several_files_are_joined_in_the_order_of_the_files() {
    let files = ["b", "a", "c"].map(|name| SourceFile {
        name: name.into(),
        text: format!(
            "{HEAD}rules: [{{name: {name}, taint: {{key: example.com/{name}}}, gates: []}}]\n"
        ),
    });
    let joined = config::parse_files(&files).unwrap().0;
    let names: Vec<_> = joined.rules.iter().map(|rule| rule.name.as_str()).collect();
    assert_eq!(names, ["b", "a", "c"]);
    assert_eq!(config::parse(&config::show(&joined)).unwrap(), joined);
}

#[test]
fn what_conflicts_in_two_files_is_refused_with_both_places() {
    const REMEDY: &str = "or different values of one label in nodeSelector";
    let rule = |name: &str, key: &str, more: &str| {
        format!(
            "rules:\n- name: {name}\n  taint: {{key: example.com/{key}, effect: NoSchedule}}\n  gates: []\n{more}"
        )
    };
    let waits = |name: &str, publishes: &str, kind: &str| {
        rule(name, name, "").replace(
            "[]",
            &format!("[{{name: g, nodeCondition: {{type: {kind}}}}}]"),
        ) + &format!("  publishCondition: {{type: {publishes}}}\n")
    };
    let retaint = |name: &str, value: &str| {
        rule(name, "a", "  retaint: {after: 30s}\n")
            .replace(
                "effect: NoSchedule",
                &format!("effect: NoSchedule, value: {value}"),
            )
            .replace("[]", "[{name: g, file: {path: /run/ready}}]")
    };
    let published = "  publishCondition: {type: example.com/A}\n";
    let age = rule("b", "b", "").replace(
        "[]",
        "[{name: g, nodeCondition: {type: example.com/A, maxAge: 1m}}]",
    );
    for (first, second, expected) in [
        (
            rule("a", "a", ""),
            rule("a", "b", ""),
            vec!["b.yaml:4:9: rules[0].name: must be unique, but is also the name at a.yaml:4:3".to_owned()],
        ),
        (
            rule("a", "a", ""),
            rule("b", "a", ""),
            vec![format!("b.yaml:5:3: rules[0].taint: can match the same taint as the rule at a.yaml:5:3; name different keys, values or effects, {REMEDY}")],
        ),
        (
            retaint("a", "x"),
            retaint("b", "y"),
            vec![format!("b.yaml:7:3: rules[0].retaint: puts back the same taint as the rule at a.yaml:7:3: a Node has one taint of a key and effect, whatever its value; use retaint in one of them only, {REMEDY}")],
        ),
        (
            rule("a", "a", published),
            rule("b", "b", published),
            vec![format!("b.yaml:7:3: rules[0].publishCondition: names the same condition as the one at a.yaml:7:3; name different types, {REMEDY}")],
        ),
        (
            rule("a", "a", published),
            age,
            vec!["a.yaml:7:3: rules[0].publishCondition: names a condition to which a gate of the rule at b.yaml:4:3 gives a maxAge: untaint writes it only when it changes".into()],
        ),
        (
            waits("a", "example.com/A", "example.com/B"),
            waits("b", "example.com/B", "example.com/A"),
            vec![
                "a.yaml:7:3: rules[0].publishCondition: names a condition that the gates of the same rule wait for, through the rule at b.yaml:4:3: it could never change".into(),
                "b.yaml:7:3: rules[0].publishCondition: names a condition that the gates of the same rule wait for, through the rule at a.yaml:4:3: it could never change".into(),
            ],
        ),
        (
            format!("events: true\n{}", rule("a", "a", "")),
            format!("events: false\n{}", rule("b", "b", "")),
            vec!["b.yaml:3:1: events: is false, but is true at a.yaml:3:1; leave it out in one of the files".into()],
        ),
    ] {
        assert_eq!(wrong(&[&first, &second]), expected);
    }
    for (first, second) in [
        (rule("a", "a", ""), rule("b", "b", "")),
        (
            format!("events: true\n{}", rule("a", "a", "")),
            rule("b", "b", ""),
        ),
        (
            format!("events: true\n{}", rule("a", "a", "")),
            format!("events: true\n{}", rule("b", "b", "")),
        ),
    ] {
        assert_eq!(wrong(&[&first, &second]), [""; 0]);
    }
}

#[test]
fn a_setting_of_one_file_holds_for_all() {
    let text = |name: &str, more: &str| SourceFile {
        name: name.into(),
        text: format!(
            "{HEAD}{more}rules: [{{name: {name}, taint: {{key: example.com/{name}}}, gates: []}}]\n"
        ),
    };
    for (first, second, events) in [
        ("", "", false),
        ("events: true\n", "", true),
        ("", "events: true\n", true),
        ("", "events: false\n", false),
    ] {
        let joined = config::parse_files(&[text("a", first), text("b", second)])
            .unwrap()
            .0;
        assert_eq!(joined.events, events, "{first:?} {second:?}");
    }
}

#[test]
fn each_file_is_read_for_its_problems_whatever_is_wrong_with_the_others() {
    let good = "rules: [{name: a, taint: {key: example.com/a}, gates: []}]\n";
    let same = "rules:\n- {name: a, taint: {key: example.com/b}, gates: []}\n";
    let problems = wrong(&["- [\n", "more: 1\n", good, same, ""]);
    let places: Vec<_> = problems
        .iter()
        .map(|problem| problem.split(": ").next().unwrap())
        .collect();
    assert_eq!(
        places,
        [
            "a.yaml:3:3",
            "b.yaml:1:1",
            "b.yaml:3:1",
            "d.yaml:4:10",
            "e.yaml:1:1"
        ],
        "{problems:#?}"
    );
    assert!(
        problems[3].ends_with("but is also the name at c.yaml:3:10"),
        "{problems:#?}"
    );
}

#[test]
fn the_limit_of_values_is_one_for_all_files_together() {
    let list = format!("more: [{}]\n", "x,".repeat(20_000));
    let problems = wrong(&[&list, &list, &list, &list]);
    let too_large = "c.yaml: has more than 50000 values together with the files before it";
    assert!(problems.iter().any(|problem| problem == too_large));
    assert!(!problems.iter().any(|problem| problem.starts_with("d.yaml")));
}

/// Each looks for those that wait for it, through all others.
#[test]
fn many_rules_that_wait_for_each_others_conditions_are_read_without_delay() {
    let rule = |index: usize| {
        format!(
            "- {{name: r{index}, taint: {{key: example.com/k{index}}}, publishCondition: {{type: C{index}}}, \
             gates: [{{name: g, nodeCondition: {{type: C{}}}}}]}}\n",
            index + 1
        )
    };
    let rules: String = (0..500).map(rule).collect();
    let begun = std::time::Instant::now();
    assert_eq!(wrong(&[&format!("rules:\n{rules}")]), Vec::<String>::new());
    let took = begun.elapsed();
    assert!(took.as_secs() < 20, "{took:?}");
}
