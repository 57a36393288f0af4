//! The requests to the API server, from its audit log.

use std::collections::BTreeMap;
use std::fs;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use anyhow::{Context as _, Result};
use http::Request;
use serde_json::Value;
use tokio::time::{sleep, timeout};

use super::Cluster;
use crate::DEADLINE;

/// The interval at which the log file is read.
const POLL: Duration = Duration::from_millis(10);

/// One request.
#[derive(Debug, Clone)]
pub struct AuditEntry {
    /// `get`, `list`, `watch`, `patch` and so on.
    pub verb: String,
    /// Path and query.
    pub uri: String,
    /// The status code.
    pub code: Option<u64>,
    /// The user's name.
    pub user: String,
    /// The Node to which the user's token is bound.
    pub node: Option<String>,
    /// The time of arrival: RFC 3339, with microseconds.
    pub received: String,
    /// The header.
    pub user_agent: String,
    /// The time of the answer, or of its start for a watch, in the same form.
    pub answered: String,
    /// The annotations of admission and authorization.
    pub annotations: BTreeMap<String, String>,
}

impl Cluster {
    /// The requests so far for which `wanted` is true, in the order of the log. A watch counts once, from its start.
    /// A request whose answer its sender does not have yet can be missing, even if a watch already shows its effect.
    pub async fn requests(&self, wanted: impl Fn(&AuditEntry) -> bool) -> Result<Vec<AuditEntry>> {
        let mut entries = timeout(DEADLINE, self.entries_up_to_now())
            .await
            .context("the audit log lacks the latest request")??;
        entries.retain(wanted);
        Ok(entries)
    }

    /// The server logs a request when its answer is complete. So when the log has a request that is sent now, it has all
    /// those whose senders have their answers already.
    async fn entries_up_to_now(&self) -> Result<Vec<AuditEntry>> {
        static MARKS: AtomicUsize = AtomicUsize::new(0);
        let mark = MARKS.fetch_add(1, Ordering::Relaxed);
        let uri = format!("/version?mark={mark}");
        let request = Request::get(&uri).body(Vec::new())?;
        self.client().await?.request_text(request).await?;
        loop {
            let entries = parse(&fs::read_to_string(self.control_plane.audit_log())?);
            if entries.iter().any(|entry| entry.uri == uri) {
                return Ok(entries);
            }
            sleep(POLL).await;
        }
    }
}

/// Skips an incomplete line, and the end of a watch.
fn parse(log: &str) -> Vec<AuditEntry> {
    log.lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok())
        .filter(|event| event["verb"] != "watch" || event["stage"] == "ResponseStarted")
        .map(|event| {
            let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
            let user = &event["user"];
            let node = &user["extra"]["authentication.kubernetes.io/node-name"][0];
            AuditEntry {
                verb: text(&event["verb"]),
                uri: text(&event["requestURI"]),
                code: event["responseStatus"]["code"].as_u64(),
                user: text(&user["username"]),
                node: node.as_str().map(str::to_owned),
                received: text(&event["requestReceivedTimestamp"]),
                user_agent: text(&event["userAgent"]),
                answered: text(&event["stageTimestamp"]),
                annotations: serde_json::from_value(event["annotations"].clone())
                    .unwrap_or_default(),
            }
        })
        .collect()
}
