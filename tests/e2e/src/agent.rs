//! untaint as a pod on the node, by its own account.

use anyhow::Result;
use serde_json::Value;
use testkit::agent::get;

use crate::node::eventually_async;

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
    let gates = rule["gates"].as_array().into_iter().flatten();
    let closed = gates.filter(|gate| gate["state"] != "open");
    closed.filter_map(|gate| gate["name"].as_str()).collect()
}
