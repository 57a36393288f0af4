//! What the agent on the node says of itself.

use anyhow::{Context as _, Result};
use serde_json::Value;
use testkit::agent::get;

use crate::node::eventually_async;

/// Waits until the rule waits for exactly the gates with these names, and returns what the agent says of each.
pub(crate) async fn waits_for(rule: &str, gates: &[&str]) -> Result<Vec<String>> {
    let what = format!("rule {rule} waits for {gates:?} only");
    eventually_async(&what, async || {
        let rule = self::rule(rule).await.ok()?;
        let closed = closed_gates(&rule);
        let found = closed.iter().map(|gate| &gate["name"]);
        (rule["decision"] == "waiting" && found.eq(gates)).then(|| {
            let messages = closed.iter().map(|gate| message(gate));
            messages.map(str::to_owned).collect()
        })
    })
    .await
}

/// Waits until a gate of the rule is not open, with `text` in its message.
pub(crate) async fn says(rule: &str, text: &str) -> Result<()> {
    let what = format!("rule {rule} says {text:?}");
    eventually_async(&what, async || {
        let rule = self::rule(rule).await.ok()?;
        let closed = closed_gates(&rule);
        let found = closed.into_iter().any(|gate| message(gate).contains(text));
        found.then_some(())
    })
    .await
}

fn closed_gates(rule: &Value) -> Vec<&Value> {
    let gates = rule["gates"].as_array().into_iter().flatten();
    gates.filter(|gate| gate["state"] != "open").collect()
}

fn message(gate: &Value) -> &str {
    gate["message"].as_str().unwrap_or_default()
}

/// Fails while the agent does not run.
async fn rule(name: &str) -> Result<Value> {
    let (_, status) = get("127.0.0.1:9468", "/statusz").await?;
    let status: Value = serde_json::from_str(&status)?;
    let mut rules = status["rules"].as_array().into_iter().flatten();
    let rule = rules.find(|rule| rule["name"] == name);
    rule.cloned().context("a rule of this name")
}
