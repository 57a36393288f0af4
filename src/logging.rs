//! Logs on standard error.

use std::env;
use std::io::{self, IsTerminal, Write, stderr};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;
use std::time::Duration;

use clap::ValueEnum;
use tracing::level_filters::LevelFilter;
use tracing_subscriber::Layer;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// Text on a terminal, JSON otherwise.
    Auto,
    /// For people.
    Text,
    /// One JSON object per line.
    Json,
}

/// Lines that wait for a slow reader of standard error. More are dropped.
const QUEUE: usize = 1024;
/// How long the program waits for these lines at its end. The processors of a node that starts are busy.
const FLUSH: Duration = Duration::from_millis(500);

/// Starts logging. Call it once, and keep the result until the end of the program.
///
/// A separate thread writes the lines, so that the main job goes on if nobody reads standard error.
pub fn init(format: Format, level: LevelFilter) -> Flush {
    let (lines, queue) = sync_channel(QUEUE);
    let (done, flushed) = sync_channel(0);
    thread::spawn(move || {
        let _done: SyncSender<()> = done;
        write_all(&queue);
    });
    let writer = Lines(lines.clone());
    let layer = tracing_subscriber::fmt::layer()
        .with_target(false)
        .with_writer(move || writer.clone())
        // These would be printed to standard error, with a panic if that fails.
        .log_internal_errors(false);
    // Libraries log much that is not about taints.
    let ours = Targets::new()
        .with_default(level.min(LevelFilter::WARN))
        .with_target(env!("CARGO_PKG_NAME"), level);
    let is_terminal = stderr().is_terminal();
    // https://no-color.org: an empty variable has no effect.
    let no_color = env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    let is_text = match format {
        Format::Auto => is_terminal,
        Format::Text => true,
        Format::Json => false,
    };
    let layer = if is_text {
        layer.with_ansi(is_terminal && !no_color).boxed()
    } else {
        layer.json().flatten_event(true).boxed()
    };
    tracing_subscriber::registry()
        .with(layer.with_filter(ours))
        .init();
    Flush { lines, flushed }
}

/// Waits for the last lines when it is dropped.
pub struct Flush {
    lines: SyncSender<Vec<u8>>,
    flushed: Receiver<()>,
}

impl Drop for Flush {
    fn drop(&mut self) {
        // An empty line ends the thread.
        let _ = self.lines.try_send(Vec::new());
        let _ = self.flushed.recv_timeout(FLUSH);
    }
}

fn write_all(queue: &Receiver<Vec<u8>>) {
    for line in queue.iter().take_while(|line| !line.is_empty()) {
        let _ = stderr().write_all(&line);
    }
}

/// Sends lines to the thread. The formatter writes one whole line at a time.
#[derive(Clone)]
struct Lines(SyncSender<Vec<u8>>);

impl Write for Lines {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        let _ = self.0.try_send(line.to_owned());
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
