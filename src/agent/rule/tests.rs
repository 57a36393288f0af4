use serde_json::json;
use tokio::sync::mpsc;

use super::*;
use crate::config::{Condition, Gate, NodeCondition, Observation, Observed};
use crate::gate::observation::Sight;
use crate::taint::TaintMatcher;

fn node(version: &str, ready: &str) -> NodeSight {
    let node = serde_json::from_value(json!({
        "metadata": {"name": "node", "uid": "u", "resourceVersion": version},
        "spec": {"taints": [{"key": "t", "effect": "NoSchedule"}]},
        "status": {"conditions": [{"type": "Ready", "status": ready}]},
    }));
    NodeSight {
        node: node.unwrap(),
        watching: true,
    }
}

#[tokio::test]
async fn a_decision_goes_by_what_the_gates_say_of_the_very_node_it_is_about() {
    let condition = NodeCondition {
        kind: "Ready".into(),
        status: "True".into(),
    };
    let observation = Observation {
        name: "ready".into(),
        object: Observed::NodeCondition(condition),
    };
    let gate = Gate::Single(Condition::Observation(observation));
    let taint = TaintMatcher {
        key: "t".into(),
        value: None,
        effect: None,
    };
    let (updates, _reported) = mpsc::channel(1);
    let surroundings = Surroundings {
        updates,
        sight: Sight::none(),
    };
    let mut rule = RuleAtWork::new(0, Rule::new("rule", taint, vec![gate]), surroundings);
    let now = Instant::now();
    for _ in 0..2 {
        rule.step(now, &node("1", "True"));
    }
    assert_eq!(rule.decision(), Decision::Ready);
    rule.step(now, &node("2", "False"));
    assert_eq!(rule.decision(), Decision::Waiting);
}
