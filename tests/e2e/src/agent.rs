//! untaint as a pod on the node, by its own account.

use anyhow::Result;
use serde_json::Value;
use testkit::agent::get;

use crate::eventually::eventually_async;

/// The pod has the network of the host, which is that of the scenario.
const ADDRESS: &str = "127.0.0.1:9468";

/// The code and the body of `/readyz`; `None` while it does not answer.
pub(crate) async fn readiness() -> Option<(u16, String)> {
    get(ADDRESS, "/readyz").await.ok()
}

/// Waits until it is ready.
pub(crate) async fn ready() -> Result<()> {
    eventually_async("untaint is ready", async || {
        readiness().await.filter(|(code, _)| *code == 200)
    })
    .await?;
    Ok(())
}

/// `/metrics`; `None` while it does not answer.
pub(crate) async fn metrics() -> Option<String> {
    Some(get(ADDRESS, "/metrics").await.ok()?.1)
}

/// Waits until `holds` is true for `/statusz`, and returns that.
pub(crate) async fn status(what: &str, holds: impl Fn(&Value) -> bool) -> Result<Value> {
    eventually_async(what, async || {
        let (_, status) = get(ADDRESS, "/statusz").await.ok()?;
        serde_json::from_str(&status).ok().filter(&holds)
    })
    .await
}

/// The rule of this name in `/statusz`, or null.
pub(crate) fn rule<'a>(status: &'a Value, name: &str) -> &'a Value {
    let mut rules = status["rules"].as_array().into_iter().flatten();
    rules
        .find(|rule| rule["name"] == name)
        .unwrap_or(&Value::Null)
}

/// The names of the gates of a rule that are not open.
pub(crate) fn closed_gates(rule: &Value) -> Vec<&str> {
    not_open(rule)
        .filter_map(|gate| gate["name"].as_str())
        .collect()
}

/// Waits until the rule waits for exactly the gates with these names, and returns what the agent says of each.
pub(crate) async fn waits_for(name: &str, gates: &[&str]) -> Result<Vec<String>> {
    let what = format!("rule {name} waits for {gates:?} only");
    let status = status(&what, |status| {
        let rule = rule(status, name);
        rule["decision"] == "waiting" && closed_gates(rule) == gates
    });
    let status = status.await?;
    Ok(messages(rule(&status, name)).map(str::to_owned).collect())
}

/// Waits until a gate of the rule is not open, with `text` in its message.
pub(crate) async fn says(name: &str, text: &str) -> Result<()> {
    let what = format!("rule {name} says {text:?}");
    let said = |status: &Value| messages(rule(status, name)).any(|message| message.contains(text));
    status(&what, said).await?;
    Ok(())
}

/// What a rule says of its gates that are not open.
fn messages(rule: &Value) -> impl Iterator<Item = &str> {
    not_open(rule).filter_map(|gate| gate["message"].as_str())
}

fn not_open(rule: &Value) -> impl Iterator<Item = &Value> {
    let gates = rule["gates"].as_array().into_iter().flatten();
    gates.filter(|gate| gate["state"] != "open")
}
