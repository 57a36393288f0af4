//! Logs on standard error.

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

/// How a log line looks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// Text on a terminal, JSON otherwise.
    Auto,
    /// For people.
    Text,
    /// One object a line.
    Json,
}

/// Lines that wait for a slow reader of standard error; more are dropped.
const QUEUE: usize = 1024;
/// How long the end of the program waits for them.
const FLUSH: Duration = Duration::from_millis(200);

/// Starts logging. To be called once; the result is to be kept until the end.
///
/// Lines are written on a thread of their own: a standard error that is full, or that nobody reads, must neither hold up
/// the main job nor end it.
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
        // It would print to standard error, and panic where that fails.
        .log_internal_errors(false);
    // Libraries have a lot to say that says little about taints.
    let ours = Targets::new()
        .with_default(level.min(LevelFilter::WARN))
        .with_target(env!("CARGO_PKG_NAME"), level);
    let json = match format {
        Format::Auto => !stderr().is_terminal(),
        Format::Text => false,
        Format::Json => true,
    };
    let registry = tracing_subscriber::registry();
    if json {
        registry
            .with(layer.json().flatten_event(true).with_filter(ours))
            .init();
    } else {
        registry
            .with(layer.with_ansi(stderr().is_terminal()).with_filter(ours))
            .init();
    }
    Flush { lines, flushed }
}

/// Waits a little for the last lines when it is dropped.
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
        // Nobody to tell.
        let _ = stderr().write_all(&line);
    }
}

/// The way to the thread; one whole line a write, as the formatter does it.
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
