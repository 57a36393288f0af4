//! Durations as the file writes them.

use std::time::Duration;

use jiff::SignedDuration;
use jiff::fmt::friendly::SpanParser;
use serde::{Serialize, Serializer};

use super::read::{Cursor, Value};
use crate::syntax::Syntax;

/// The longest that the file may ask for.
const MAX: Duration = Duration::from_hours(24);

/// What [`parse`] reads.
pub(super) const DURATION: Syntax = Syntax {
    expected: "a duration up to 24h such as 500ms, 90s or 1m30s",
    longest: None,
    pattern: concat!(
        r"^\+?([0-9]+([.,][0-9]*)?\s*",
        "(h|hrs?|hours?|m|mins?|minutes?|s|secs?|seconds?|ms|msecs?|millis?|milliseconds?|[uµ]s|[uµ]secs?|micros?|",
        r"microseconds?|ns|nsecs?|nanos?|nanoseconds?),?\s*|[0-9]+:[0-9]+:[0-9]+([.,][0-9]*)?\s*)+$",
    ),
    holds: |text| parse(text).is_some(),
};

/// Reads `90s`, `1m30s`, `500ms` and everything else that [`jiff`]'s friendly format has, up to [`MAX`].
fn parse(text: &str) -> Option<Duration> {
    let duration = SpanParser::new().parse_unsigned_duration(text).ok()?;
    (duration <= MAX).then_some(duration)
}

/// The same for the command line. The error is a whole message: `must be …`.
pub fn parse_duration(text: &str) -> Result<Duration, String> {
    parse(text).ok_or_else(|| DURATION.refusal(text))
}

impl Cursor<'_> {
    pub(super) fn duration(&self) -> Option<Duration> {
        let duration = match self.value() {
            Value::String(text) => parse(text),
            _ => None,
        };
        duration.or_else(|| self.mismatch(DURATION.expected))
    }

    /// A duration that is not shorter than `least`, for this `reason`.
    pub(super) fn duration_from(&self, least: Duration, reason: &str) -> Option<Duration> {
        let duration = self.duration()?;
        if duration < least {
            self.report(format!("must be {} or more: {reason}", shown(least)));
        }
        Some(duration)
    }
}

/// `1m 30s`, which [`parse`] reads back.
pub(crate) fn shown(value: Duration) -> String {
    let signed = SignedDuration::try_from(value).unwrap_or(SignedDuration::MAX);
    if signed.is_zero() {
        "0s".into()
    } else {
        format!("{signed:#}")
    }
}

/// A duration, or an `Option` of one, as [`shown`].
pub(super) fn serialize<S: Serializer>(
    value: &(impl Copy + Into<Option<Duration>>),
    serializer: S,
) -> Result<S::Ok, S::Error> {
    (*value).into().map(shown).serialize(serializer)
}

/// Seconds, with a fraction where there is one.
pub(super) fn serialize_seconds<S: Serializer>(
    value: &Duration,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    if value.subsec_nanos() == 0 {
        value.as_secs().serialize(serializer)
    } else {
        value.as_secs_f64().serialize(serializer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_read_as_go_writes_them() {
        for (text, millis) in [
            ("0s", 0),
            ("500ms", 500),
            ("90s", 90_000),
            ("1m30s", 90_000),
            ("1m 30s", 90_000),
            ("1.5h", 5_400_000),
            ("24h", 86_400_000),
        ] {
            assert_eq!(parse(text), Some(Duration::from_millis(millis)), "{text}");
        }
    }

    /// The library reads more than the documents describe.
    #[test]
    fn the_schema_refuses_no_duration_that_is_read() {
        let schema = jsonschema::validator_for(DURATION.schema().as_value()).unwrap();
        let numbers = ["0", "1", "1.5", "1,5", "1."];
        let units = "h hr hrs hour hours m min mins minute minutes s sec secs second seconds ms msec \
                     msecs milli millis millisecond milliseconds us usec usecs µs µsec µsecs micro \
                     micros microsecond microseconds ns nsec nsecs nano nanos nanosecond nanoseconds \
                     d days :00:30 :00:30.5";
        let gaps = ["", " ", ", ", "\t\n", " ,"];
        let parts = numbers.iter().flat_map(|number| {
            let quantities = gaps.iter().flat_map(move |gap| {
                let units = units.split(' ');
                units.map(move |unit| format!("{number}{gap}{unit}"))
            });
            quantities.collect::<Vec<_>>()
        });
        let parts: Vec<_> = parts.collect();
        let mut count = 0;
        for first in &parts {
            for rest in [
                "", " ", " ago", ", 1ms", ",1ms", " 1ms", "1 ms", ", 0:0:1", "0:0:1", "5",
            ] {
                for sign in ["", "+", "-"] {
                    let text = format!("{sign}{first}{rest}");
                    if parse(&text).is_some() {
                        count += 1;
                        assert!(schema.is_valid(&text.as_str().into()), "{text:?}");
                    }
                }
            }
        }
        assert!(count > 1000, "{count}");
    }

    #[test]
    fn durations_without_unit_negative_or_above_a_day_are_refused() {
        for text in ["", "5", "-5s", "5s ago", "24h1ns", "1d", "soon", "PT5S"] {
            assert_eq!(parse(text), None, "{text}");
        }
        let schema = jsonschema::validator_for(DURATION.schema().as_value()).unwrap();
        for text in ["", "5", "-5s", "5s ago", "1d", "soon", "PT5S"] {
            assert!(!schema.is_valid(&text.into()), "{text}");
        }
    }
}
