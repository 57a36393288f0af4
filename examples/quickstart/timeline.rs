//! The format of the timeline.

use std::env;
use std::io::{self, IsTerminal as _, Write as _};
use std::time::{Duration, Instant};

/// The actor of a line.
#[derive(Clone, Copy)]
pub(crate) enum Who {
    Kubelet,
    Cni,
    CsiDriver,
    Controller,
    ApiServer,
    Untaint,
}

impl Who {
    fn name(self) -> &'static str {
        match self {
            Self::Kubelet => "kubelet",
            Self::Cni => "CNI",
            Self::CsiDriver => "CSI driver",
            Self::Controller => "controller",
            Self::ApiServer => "API server",
            Self::Untaint => "untaint",
        }
    }
}

/// The meaning of a text, which has a color.
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
    /// The rule of the event, if it has only one.
    pub(crate) rule: Option<String>,
    pub(crate) what: String,
    pub(crate) tone: Tone,
}

/// Standard output, and the start of the time stamps.
pub(crate) struct Timeline {
    start: Instant,
    colors: bool,
}

impl Timeline {
    /// Starts now. Uses colors on a terminal, unless the user disabled them (see no-color.org).
    pub(crate) fn start() -> Self {
        let unwanted = env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        Self {
            start: Instant::now(),
            colors: io::stdout().is_terminal() && !unwanted,
        }
    }

    pub(crate) fn since_start(&self, at: Instant) -> Duration {
        at.saturating_duration_since(self.start)
    }

    /// Prints the names of the columns.
    pub(crate) fn print_head(&self) -> io::Result<()> {
        say(&self.paint(Tone::Faint, &columns("ms", "who", "rule", "what")))
    }

    pub(crate) fn print(&self, line: &Line) -> io::Result<()> {
        let time = self.since_start(line.at).as_millis().to_string();
        let what = self.paint(line.tone, &line.what);
        let rule = line.rule.as_deref().unwrap_or("-");
        say(&columns(&time, line.who.name(), rule, &what))
    }

    pub(crate) fn paint(&self, tone: Tone, text: &str) -> String {
        let code = match tone {
            Tone::Plain => return text.into(),
            _ if !self.colors => return text.into(),
            Tone::Faint => 2,
            Tone::Waiting => 33,
            Tone::Good => 32,
            Tone::Bad => 31,
        };
        format!("\x1b[{code}m{text}\x1b[0m")
    }
}

fn columns(time: &str, who: &str, rule: &str, what: &str) -> String {
    format!("{time:>6}  {who:<10}  {rule:<7}  {what}")
}

/// Prints a line that is not an event.
pub(crate) fn say(text: &str) -> io::Result<()> {
    writeln!(io::stdout(), "{text}")
}
