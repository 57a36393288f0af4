//! The agent's own pages at the end.

use anyhow::{Context as _, Result};
use serde_json::Value;
use testkit::agent::get;

use crate::logs::Logs;

#[derive(Default)]
pub(crate) struct Pages {
    /// The rules that are overdue in `/statusz`.
    pub(crate) overdue: Vec<String>,
    pub(crate) metrics: String,
}

/// Reads the pages over HTTP.
pub(crate) async fn read(logs: &Logs) -> Result<Pages> {
    let lines = logs.after(0);
    let listening = lines
        .iter()
        .find(|line| line.text("message") == "listening")
        .context("the agent does not listen")?;
    let address = listening.text("address");
    let (_, metrics) = get(address, "/metrics").await?;
    let (_, status) = get(address, "/statusz").await?;
    let mut status: Value = serde_json::from_str(&status).context("/statusz")?;
    let rules = status["rules"].take();
    let rules = rules.as_array().context("/statusz has no rules")?;
    let overdue = rules.iter().filter(|rule| rule["overdue"] == true);
    let names = overdue.filter_map(|rule| rule["name"].as_str().map(str::to_owned));
    Ok(Pages {
        overdue: names.collect(),
        metrics,
    })
}
