//! Something that happened once, as `/statusz` shows it.

use jiff::Timestamp;
use serde::Serialize;

/// Something that happened once.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Incident {
    /// When.
    pub time: Timestamp,
    /// What.
    pub message: String,
}

impl Incident {
    /// Now.
    pub fn now(message: impl Into<String>) -> Self {
        Self {
            time: Timestamp::now(),
            message: message.into(),
        }
    }
}
