//! Logs on standard error.

use std::io::{IsTerminal, stderr};
use std::time::{Duration, Instant};

use clap::ValueEnum;
use tracing::level_filters::LevelFilter;

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

/// Starts logging. To be called once.
pub fn init(format: Format, level: LevelFilter) {
    let builder = tracing_subscriber::fmt()
        .with_max_level(level)
        .with_target(false)
        .with_writer(stderr);
    let json = match format {
        Format::Auto => !stderr().is_terminal(),
        Format::Text => false,
        Format::Json => true,
    };
    if json {
        builder.json().flatten_event(true).init();
    } else {
        builder.with_ansi(stderr().is_terminal()).init();
    }
}

/// Keeps a failure that repeats itself from filling the log.
#[derive(Debug, Default)]
pub struct Repetition(Option<(String, Instant)>);

impl Repetition {
    /// The same message is worth a line only so often.
    const PERIOD: Duration = Duration::from_mins(1);

    /// Whether `message` is worth a line: it is another one than the last, or that was long ago.
    pub fn is_news(&mut self, now: Instant, message: &str) -> bool {
        let news = self
            .0
            .as_ref()
            .is_none_or(|(last, told)| last != message || now - *told >= Self::PERIOD);
        if news {
            self.0 = Some((message.to_owned(), now));
        }
        news
    }

    /// It is over: the next failure is news. Gives whether there was one.
    pub fn end(&mut self) -> bool {
        self.0.take().is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_that_repeats_is_news_once_a_minute_and_again_after_it_was_over() {
        let start = Instant::now();
        let mut repetition = Repetition::default();
        assert!(repetition.is_news(start, "refused"));
        assert!(!repetition.is_news(start + Duration::from_secs(59), "refused"));
        assert!(repetition.is_news(start + Duration::from_mins(1), "refused"));
        assert!(repetition.is_news(start + Duration::from_secs(61), "timed out"));
        assert!(repetition.end());
        assert!(!repetition.end());
        assert!(repetition.is_news(start + Duration::from_secs(62), "timed out"));
    }
}
