//! When a probe runs, and how many answers make a state.

use std::time::Duration;

use schemars::JsonSchema;
use serde::Serialize;

use crate::config::duration::serialize_seconds;
use crate::config::read::Fields;

/// The longest delay, period and time-out, in seconds.
const MAX_SECONDS: u16 = 3600;
/// The shortest period and time-out, in seconds. Shorter ones would load the node.
const MIN_SECONDS: f64 = 0.01;
const MAX_THRESHOLD: u32 = 1000;

/// The timing fields of a core/v1 `Probe`, with fractions allowed and with defaults for a person who waits.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(default)]
pub struct Schedule {
    /// The time before the first probe.
    #[serde(rename = "initialDelaySeconds", serialize_with = "serialize_seconds")]
    #[schemars(with = "f64", range(min = 0, max = MAX_SECONDS))]
    pub initial_delay: Duration,
    /// The time between two probes (Kubernetes: 10).
    #[serde(rename = "periodSeconds", serialize_with = "serialize_seconds")]
    #[schemars(with = "f64", range(min = MIN_SECONDS, max = MAX_SECONDS))]
    pub period: Duration,
    /// A probe that takes longer fails.
    #[serde(rename = "timeoutSeconds", serialize_with = "serialize_seconds")]
    #[schemars(with = "f64", range(min = MIN_SECONDS, max = MAX_SECONDS))]
    pub timeout: Duration,
    /// The number of successes in a row that open the gate.
    #[schemars(range(min = 1, max = MAX_THRESHOLD))]
    pub success_threshold: u32,
    /// The number of failures in a row that close it (Kubernetes: 3).
    #[schemars(range(min = 1, max = MAX_THRESHOLD))]
    pub failure_threshold: u32,
}

impl Default for Schedule {
    fn default() -> Self {
        Self {
            initial_delay: Duration::ZERO,
            period: Duration::from_millis(250),
            timeout: Duration::from_secs(1),
            success_threshold: 1,
            failure_threshold: 1,
        }
    }
}

impl Schedule {
    const FIELDS: [&str; 5] = [
        "initialDelaySeconds",
        "periodSeconds",
        "timeoutSeconds",
        "successThreshold",
        "failureThreshold",
    ];

    pub(super) fn read(fields: &mut Fields<'_, '_>) -> Self {
        let [delay, period, timeout, success, failure] = Self::FIELDS;
        let default = Self::default();
        let mut seconds = |name, least, default| {
            fields.or(name, default, |field| {
                field.seconds(&(least..=MAX_SECONDS.into()))
            })
        };
        let initial_delay = seconds(delay, 0.0, default.initial_delay);
        let period = seconds(period, MIN_SECONDS, default.period);
        let timeout = seconds(timeout, MIN_SECONDS, default.timeout);
        let mut threshold = |name, default| {
            fields.or(name, default, |field| {
                field.whole_number(&(1..=MAX_THRESHOLD))
            })
        };
        Self {
            initial_delay,
            period,
            timeout,
            success_threshold: threshold(success, default.success_threshold),
            failure_threshold: threshold(failure, default.failure_threshold),
        }
    }

    /// The same fields where they have no meaning: beside an observation.
    pub(super) fn refuse(fields: &mut Fields<'_, '_>) {
        for field in Self::FIELDS {
            fields.refuse(
                field,
                "is not allowed here: this gate has no timing fields, because the API server reports each change",
            );
        }
    }
}
