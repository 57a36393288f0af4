//! Large configurations, large Nodes, and servers without some admission plugin.

use serde_json::{Value, json};
use testkit::taints;

use super::scene::{Scene, labelled, registration};

fn rules(number: usize) -> String {
    let rule = |nth: usize| {
        format!(
            "- {{name: r{nth}, taint: {{key: example.com/driver-{nth}, value: x, effect: NoSchedule}}, \
             nodeSelector: {{pool: a, zone: z}}, gates: []}}\n"
        )
    };
    let all = "- {name: all, taint: {key: example.com/all, effect: NoSchedule}, gates: []}\n";
    format!("{}{all}", (0..number).map(rule).collect::<String>())
}

#[tokio::test]
async fn five_hundred_rules_and_a_thousand_taints_are_no_trouble() {
    let Some(scene) = Scene::start(&[], &rules(500), "--taint-new-nodes").await else {
        return;
    };
    let selected = json!({"pool": "a", "zone": "z"});
    let mut crowded = labelled("crowded", &selected);
    let foreign = |number: usize| -> Value {
        let taint = |nth| json!({"key": format!("foreign.example/{nth}"), "effect": "NoSchedule"});
        (0..number).map(taint).collect()
    };
    crowded["spec"]["taints"] = foreign(1000);
    for (name, node, expected) in [
        ("few", registration("few"), 2),
        ("selected", labelled("selected", &selected), 502),
        ("crowded", crowded, 1502),
    ] {
        let answer = scene.register(name, &node).await;
        assert_eq!(answer.code, 201, "{name}: {}", answer.message());
        assert_eq!(taints(&answer.body).len(), expected, "{name}");
    }

    // The server stops an expression that takes too long. Such a Node is not created without the taints.
    let mut endless = labelled("endless", &selected);
    endless["spec"]["taints"] = foreign(20_000);
    let answer = scene.register("endless", &endless).await;
    assert_eq!(answer.code, 403, "{answer:?}");
    let message = answer.message();
    assert!(
        message
            .contains("policy 'untaint-new-nodes' with binding 'untaint-new-nodes' denied request")
            && message.contains("cost limit exceeded"),
        "{message}"
    );
}

/// Without `TaintNodesByCondition`, the request has no taints at all.
#[tokio::test]
async fn a_node_without_any_taint_gets_a_list_of_them_or_none() {
    let flags = ["--disable-admission-plugins=TaintNodesByCondition"];
    let rules = "- {name: a, taint: {key: example.com/a, effect: NoSchedule}, nodeSelector: {pool: a}, gates: []}\n";
    let Some(scene) = Scene::start(&flags, rules, "--taint-new-nodes").await else {
        return;
    };
    for brought in [Value::Null, json!([])] {
        for (pool, expected) in [
            (
                "a",
                json!([{"key": "example.com/a", "effect": "NoSchedule"}]),
            ),
            ("b", Value::Null),
        ] {
            let mut node = labelled("bare", &json!({"pool": pool}));
            node["spec"]["taints"] = brought.clone();
            let answer = scene.try_registration("bare", &node).await;
            assert_eq!(answer.code, 201, "{pool}: {answer:?}");
            assert_eq!(answer.body["spec"]["taints"], expected, "{pool}");
        }
    }
}
