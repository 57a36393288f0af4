//! A failure with its time, as `/statusz` shows it.

use jiff::Timestamp;
use serde::Serialize;

#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Incident {
    pub time: Timestamp,
    pub message: String,
}

impl Incident {
    pub fn now(message: impl Into<String>) -> Self {
        Self {
            time: Timestamp::now(),
            message: message.into(),
        }
    }
}
