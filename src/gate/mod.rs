//! Gates. `probe` has the kinds that ask the node itself, `observation` those that read objects of the API server. Each
//! kind has one file.
//!
//! - When a probe runs, and how many answers make a state: `run/worker.rs`, `run/threshold.rs`.
//! - The outcome of an `anyOf`: `run/group.rs`.
//! - How a gate starts, stops and gets its log line: `run/runner.rs`.
//! - Which gate was the last to open: `run/last_gate.rs`.
//! - Which gates wait for others (`after`), and the state of all gates of a rule: `run/rule_gates.rs`. How long they must be open (`stableFor`): `crate::rule`.

mod context;
mod freshness;
mod observation;
pub mod probe;
pub mod report;
pub mod run;

use serde::Serialize;

pub use context::{GateContext, NodeSnapshot};
pub use freshness::{FreshnessTracker, NodeFreshness};

/// The state of a gate, or of all gates of a rule together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// Of a rule: every gate is open.
    Open,
    /// Of a rule: some gate is closed.
    Closed,
    /// It could not be evaluated. Of a rule: no gate is closed, and some are unknown.
    Unknown,
}

impl State {
    /// As logs, status and metrics show it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Closed => "closed",
            Self::Unknown => "unknown",
        }
    }
}

/// A state and its reason. A taint is only removed while every gate is `Open`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// With what the check found.
    Open(String),
    /// With a reason that a person can act on.
    Closed(String),
    /// With the reason why it could not be evaluated.
    Unknown(String),
    /// It is not evaluated before other gates are open. With the reason.
    Waiting(String),
    /// No evaluation has ended yet.
    Unevaluated,
    /// The rule does not need the gate now.
    AtRest,
}

impl Outcome {
    /// Whether it comes from an evaluation.
    pub fn is_evaluated(&self) -> bool {
        !matches!(self, Self::Waiting(_) | Self::Unevaluated | Self::AtRest)
    }

    pub fn state(&self) -> State {
        match self {
            Self::Open(_) => State::Open,
            Self::Closed(_) => State::Closed,
            Self::Unknown(_) | Self::Waiting(_) | Self::Unevaluated | Self::AtRest => {
                State::Unknown
            }
        }
    }

    pub fn is_open(&self) -> bool {
        self.state() == State::Open
    }

    pub fn is_unknown(&self) -> bool {
        self.state() == State::Unknown
    }

    /// What the check found, or the reason why the gate is not open.
    pub fn message(&self) -> &str {
        match self {
            Self::Open(message)
            | Self::Closed(message)
            | Self::Unknown(message)
            | Self::Waiting(message) => message,
            Self::Unevaluated => "not evaluated yet",
            Self::AtRest => "not evaluated: the rule does not need this gate now",
        }
    }
}

/// `Ok` is what the check found, `Err` the reason why the gate is closed.
impl From<Result<String, String>> for Outcome {
    fn from(result: Result<String, String>) -> Self {
        result.map_or_else(Self::Closed, Self::Open)
    }
}
