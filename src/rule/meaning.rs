//! What a decision means, for people. Pure.

use super::Decision;

impl Decision {
    /// In a few words, for who does not know the word.
    #[must_use]
    pub fn meaning(self) -> &'static str {
        match self {
            Self::NoNode => "the Node has not been seen",
            Self::NotSelected => "nodeSelector does not select this Node",
            Self::Absent => "the taint is not there",
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
