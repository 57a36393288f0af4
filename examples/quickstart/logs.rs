//! Keeps the lines of the agent's log.

use std::io::{self, Write};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use serde_json::Value;
use tracing_subscriber::Layer as _;
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;

#[derive(Clone)]
pub(crate) struct LogLine {
    pub(crate) at: Instant,
    /// The fields, as with `--log-format json`.
    pub(crate) fields: Value,
}

impl LogLine {
    /// The text of a field; empty if the field is not a text.
    pub(crate) fn text(&self, field: &str) -> &str {
        self.fields[field].as_str().unwrap_or_default()
    }
}

#[derive(Clone, Default)]
pub(crate) struct Logs(Arc<Mutex<Vec<LogLine>>>);

impl Logs {
    /// Starts to keep the lines. Call this once.
    pub(crate) fn keep() -> Self {
        let logs = Self::default();
        let writer = logs.clone();
        let layer = tracing_subscriber::fmt::layer()
            .json()
            .flatten_event(true)
            .with_writer(move || writer.clone());
        let ours = Targets::new().with_target("untaint", LevelFilter::INFO);
        tracing_subscriber::registry()
            .with(layer.with_filter(ours))
            .init();
        logs
    }

    /// The lines after the first `count`.
    pub(crate) fn after(&self, count: usize) -> Vec<LogLine> {
        let lines = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        lines.get(count..).unwrap_or_default().to_vec()
    }
}

/// The formatter writes one whole line at a time.
impl Write for Logs {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        let kept = LogLine {
            at: Instant::now(),
            fields: serde_json::from_slice(line)?,
        };
        let mut lines = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        lines.push(kept);
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
