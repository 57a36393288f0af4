use std::time::Duration;

use schemars::JsonSchema;
use serde::Serialize;

use crate::config::duration::{self, DURATION};
use crate::config::read::Cursor;
use crate::syntax::Form;

/// What to do if a gate never opens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(default)]
pub struct Deadline {
    /// The time from when the agent first sees the taint; `1s` or more.
    #[serde(serialize_with = "duration::serialize")]
    #[schemars(with = "String", transform = Form(&DURATION))]
    pub after: Duration,
    /// What to do then.
    pub action: DeadlineAction,
}

/// What to do at the deadline.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
pub enum DeadlineAction {
    /// Report it, and keep the taint: the node stays out of use until its gates are open.
    Keep,
    /// Report it, and remove the taint even though gates are not open. Pods can then start on the node as it is.
    Remove,
}

impl DeadlineAction {
    /// As the file spells it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Keep => "Keep",
            Self::Remove => "Remove",
        }
    }
}

impl Default for Deadline {
    fn default() -> Self {
        Self {
            after: Duration::from_mins(10),
            action: DeadlineAction::Keep,
        }
    }
}

impl Deadline {
    const LEAST: Duration = Duration::from_secs(1);

    pub(super) fn read(cursor: &Cursor<'_>) -> Option<Self> {
        use DeadlineAction::{Keep, Remove};
        let default = Self::default();
        cursor.mapping("deadline", |fields| {
            Some(Self {
                after: fields.or("after", default.after, |after| {
                    after.duration_from(Self::LEAST, "gates need some time to open")
                }),
                action: fields.or("action", default.action, |action| {
                    action.word(&[Keep, Remove].map(|action| (action.as_str(), action)))
                }),
            })
        })
    }
}
