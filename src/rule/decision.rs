//! What a rule decides. Pure.

use std::time::Instant;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decision {
    /// The Node has not been seen: the API server is away, or there is no such Node. Gates run meanwhile.
    NoNode,
    /// `nodeSelector` does not select the Node.
    NotSelected,
    /// The Node does not have the taint.
    Absent,
    /// The Node does not have the taint, and some gate has been closed for less than `retaint.after`.
    Lapsing {
        /// When the gate will have been closed for long enough.
        until: Instant,
    },
    /// Put the taint back now.
    Lapsed,
    /// Some gate is not open.
    Waiting,
    /// Every gate has been open for less than `stableFor`.
    Stabilizing {
        /// When the gates will have been open for long enough.
        until: Instant,
    },
    /// Ready, but Karpenter would put the taint back until it has registered the Node.
    Held,
    /// Ready, but another program keeps putting the taint back.
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

    /// What the word means, for operators.
    pub fn meaning(self) -> &'static str {
        match self {
            Self::NoNode => "untaint does not see the Node",
            Self::NotSelected => "nodeSelector does not select this Node",
            Self::Absent => "the Node does not have the taint",
            Self::Lapsing { .. } => {
                "the Node does not have the taint, but some gate has been closed for less than retaint.after"
            }
            Self::Lapsed => "it is time to put the taint back",
            Self::Waiting => "some gate is not open",
            Self::Stabilizing { .. } => "every gate is open, but not for stableFor yet",
            Self::Held => {
                "ready, but Karpenter has not registered the node and would put the taint back"
            }
            Self::Limited { .. } => {
                "ready, but another program keeps putting the taint back: untaint removes it at most once every 10 s"
            }
            Self::Ready => "it is time to remove the taint",
        }
    }
}
