//! What is decided of a rule, and what happened to it. Pure.

use std::time::Instant;

use crate::config::DeadlineAction;

/// Where a rule stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decision {
    /// The Node has not been seen (the API is away, or there is no such Node): gates run meanwhile.
    NoNode,
    /// `nodeSelector` does not select the Node: nothing to do.
    NotSelected,
    /// The Node does not have the taint: nothing to do.
    Absent,
    /// Neither has it the taint, and some gate is closed, since less than `retaint.after`.
    Lapsing {
        /// When it has been closed for long enough.
        until: Instant,
    },
    /// Put the taint back now.
    Lapsed,
    /// Some gate is not open.
    Waiting,
    /// Every gate is open, since less than `stableFor`.
    Stabilizing {
        /// When it has been open for long enough.
        until: Instant,
    },
    /// Ready, but Karpenter would put the taint back until it has registered the Node.
    Held,
    /// Ready, but the taint has come back so often that somebody else wants it there.
    Limited {
        /// When the next removal is due.
        until: Instant,
    },
    /// Remove the taint now.
    Ready,
}

impl Decision {
    /// Every word of [`Self::as_str`].
    pub const WORDS: [&'static str; 10] = [
        "no-node",
        "not-selected",
        "absent",
        "lapsing",
        "lapsed",
        "waiting",
        "stabilizing",
        "held",
        "limited",
        "ready",
    ];

    /// Whether the Node has the taint, as far as is known.
    pub fn is_tainted(self) -> bool {
        !matches!(self, Self::NoNode | Self::NotSelected) && !self.is_absent()
    }

    /// Whether the Node is the rule's and does not have the taint.
    pub fn is_absent(self) -> bool {
        matches!(self, Self::Absent | Self::Lapsing { .. } | Self::Lapsed)
    }

    /// Whether every gate is open, for long enough.
    pub fn is_ready(self) -> bool {
        matches!(self, Self::Held | Self::Limited { .. } | Self::Ready)
    }

    /// When the decision changes by time alone.
    pub fn until(self) -> Option<Instant> {
        match self {
            Self::Stabilizing { until } | Self::Limited { until } | Self::Lapsing { until } => {
                Some(until)
            }
            _ => None,
        }
    }

    /// One word for logs, status and metrics.
    pub fn as_str(self) -> &'static str {
        // A word without a decision, or the other way round, does not compile.
        let [
            no_node,
            not_selected,
            absent,
            lapsing,
            lapsed,
            waiting,
            stabilizing,
            held,
            limited,
            ready,
        ] = Self::WORDS;
        match self {
            Self::NoNode => no_node,
            Self::NotSelected => not_selected,
            Self::Absent => absent,
            Self::Lapsing { .. } => lapsing,
            Self::Lapsed => lapsed,
            Self::Waiting => waiting,
            Self::Stabilizing { .. } => stabilizing,
            Self::Held => held,
            Self::Limited { .. } => limited,
            Self::Ready => ready,
        }
    }

    /// What the word means, for people.
    pub fn meaning(self) -> &'static str {
        match self {
            Self::NoNode => "the Node has not been seen",
            Self::NotSelected => "nodeSelector does not select this Node",
            Self::Absent => "the taint is not there",
            Self::Lapsing { .. } => {
                "the taint is not there, but some gate is closed, since less than retaint.after"
            }
            Self::Lapsed => "the taint is to be put back now",
            Self::Waiting => "some gate is not open",
            Self::Stabilizing { .. } => "all gates are open, since less than stableFor",
            Self::Held => {
                "ready, but Karpenter has not registered the node and would put the taint back"
            }
            Self::Limited { .. } => {
                "ready, but somebody keeps putting the taint back: one removal in 10 s"
            }
            Self::Ready => "the taint is to be removed now",
        }
    }
}

/// What happened to a rule, for people to know.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Occurrence {
    /// The taint was seen.
    Tainted,
    /// It is gone, and nobody here removed it.
    RemovedByOther {
        /// Whether the rule was ready by then: if not, it was removed too early.
        ready: bool,
    },
    /// It comes back as often as it is removed.
    Fight,
    /// It waits for long already.
    LongWait,
    /// It has been there for the whole of `deadline.after`.
    Deadline(DeadlineAction),
}
