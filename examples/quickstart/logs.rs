//! What the agent logs, kept line by line.

use std::io::{self, Write};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use serde_json::Value;
use tracing_subscriber::Layer as _;
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;

/// A line.
#[derive(Clone)]
pub(crate) struct LogLine {
    pub(crate) at: Instant,
    /// As with `--log-format json`.
    pub(crate) fields: Value,
}

impl LogLine {
    /// A field that is a text; empty where it is none.
    pub(crate) fn text(&self, field: &str) -> &str {
        self.fields[field].as_str().unwrap_or_default()
    }
}

/// All lines so far.
#[derive(Clone, Default)]
pub(crate) struct Logs(Arc<Mutex<Vec<LogLine>>>);

impl Logs {
    /// Begins to keep them. To be called once.
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

    /// Those after the first `count`.
    pub(crate) fn after(&self, count: usize) -> Vec<LogLine> {
        let lines = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        lines.get(count..).unwrap_or_default().to_vec()
    }
}

/// One whole line a write, as the formatter does it.
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
