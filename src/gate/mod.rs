//! Gates: one file a kind. Each has one `check`, which says what it found.

pub mod observation;
pub mod probe;
pub mod report;
pub mod run;

use serde::Serialize;

/// Of a gate, or of all gates of a rule together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// The condition holds. Of a rule: every gate is open.
    Open,
    /// It does not. Of a rule: some gate is closed.
    Closed,
    /// It could not be asked. Of a rule: no gate is closed, and some are unknown.
    Unknown,
}

impl State {
    /// The words of logs, status and metrics.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Closed => "closed",
            Self::Unknown => "unknown",
        }
    }
}

/// What one evaluation of a gate found, with what a person should know of it.
///
/// `unknown` (not evaluated yet, or not to be evaluated now) never removes a taint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// The condition holds; what was seen.
    Open(String),
    /// It does not; the reason, which a person can act on.
    Closed(String),
    /// It could not be asked; why.
    Unknown(String),
    /// Nothing has been asked yet.
    Unevaluated,
    /// Nothing is asked: the rule has no use for it now.
    AtRest,
}

impl Outcome {
    /// Whether it comes from an evaluation.
    pub fn is_evaluated(&self) -> bool {
        !matches!(self, Self::Unevaluated | Self::AtRest)
    }

    /// Without the words.
    pub fn state(&self) -> State {
        match self {
            Self::Open(_) => State::Open,
            Self::Closed(_) => State::Closed,
            Self::Unknown(_) | Self::Unevaluated | Self::AtRest => State::Unknown,
        }
    }

    /// Whether the condition holds.
    pub fn is_open(&self) -> bool {
        self.state() == State::Open
    }

    /// Whether it could not be asked.
    pub fn is_unknown(&self) -> bool {
        self.state() == State::Unknown
    }

    /// What was seen, or the reason why it is not open.
    pub fn message(&self) -> &str {
        match self {
            Self::Open(message) | Self::Closed(message) | Self::Unknown(message) => message,
            Self::Unevaluated => "not evaluated yet",
            Self::AtRest => "at rest: the rule has no use for it now",
        }
    }
}

/// `Ok` is what was seen, `Err` the reason why the gate is closed.
impl From<Result<String, String>> for Outcome {
    fn from(result: Result<String, String>) -> Self {
        result.map_or_else(Self::Closed, Self::Open)
    }
}
