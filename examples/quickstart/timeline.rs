//! How a line of the timeline looks.

use std::env;
use std::io::{self, IsTerminal as _, Write as _};
use std::time::{Duration, Instant};

/// Whose doing or finding a line is.
#[derive(Clone, Copy)]
pub(crate) enum Who {
    Node,
    Cni,
    Agent,
    ApiServer,
    Someone,
}

impl Who {
    fn name(self) -> &'static str {
        match self {
            Self::Node => "node",
            Self::Cni => "CNI",
            Self::Agent => "agent",
            Self::ApiServer => "API server",
            Self::Someone => "someone",
        }
    }
}

/// What a text means for the job.
#[derive(Clone, Copy)]
pub(crate) enum Tone {
    Plain,
    Faint,
    Waiting,
    Good,
    Bad,
}

/// One event.
pub(crate) struct Line {
    pub(crate) at: Instant,
    pub(crate) who: Who,
    /// A word or two.
    pub(crate) subject: String,
    pub(crate) detail: String,
    pub(crate) tone: Tone,
}

/// Standard output, and when the time stamps begin.
pub(crate) struct Timeline {
    start: Instant,
    colours: bool,
}

impl Timeline {
    /// Begins now. Colours are for terminals whose user has not said otherwise (see no-color.org).
    pub(crate) fn start() -> Self {
        let unwanted = env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        Self {
            start: Instant::now(),
            colours: io::stdout().is_terminal() && !unwanted,
        }
    }

    pub(crate) fn since_start(&self, at: Instant) -> Duration {
        at.saturating_duration_since(self.start)
    }

    pub(crate) fn print(&self, line: &Line) -> io::Result<()> {
        let time = format!("{:>10}", offset(self.since_start(line.at)));
        let time = self.paint(Tone::Faint, &time);
        let detail = self.paint(line.tone, &line.detail);
        let (who, subject) = (line.who.name(), &line.subject);
        say(&format!("{time}  {who:<10}  {subject:<16}  {detail}"))
    }

    pub(crate) fn paint(&self, tone: Tone, text: &str) -> String {
        let code = match tone {
            Tone::Plain => return text.into(),
            _ if !self.colours => return text.into(),
            Tone::Faint => 2,
            Tone::Waiting => 33,
            Tone::Good => 32,
            Tone::Bad => 31,
        };
        format!("\x1b[{code}m{text}\x1b[0m")
    }
}

/// A line that is no event.
pub(crate) fn say(text: &str) -> io::Result<()> {
    writeln!(io::stdout(), "{text}")
}

/// As in the first column.
pub(crate) fn offset(since_start: Duration) -> String {
    format!("+{:.3} s", since_start.as_secs_f64())
}
