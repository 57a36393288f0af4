//! Reads numbers.

use std::ops::RangeInclusive;
use std::time::Duration;

use super::cursor::Cursor;
use super::tree::Value;

impl Cursor<'_> {
    pub(crate) fn whole_number(&self, range: &RangeInclusive<u32>) -> Option<u32> {
        let bounds = format!("between {} and {}", range.start(), range.end());
        match self.value() {
            Value::Number(number) if !number.is_f64() => number
                .as_u64()
                .and_then(|number| u32::try_from(number).ok())
                .filter(|number| range.contains(number))
                .or_else(|| self.mismatch(&bounds)),
            _ => self.mismatch(&format!("a whole number {bounds}")),
        }
    }

    /// Seconds, with or without a fraction.
    pub(crate) fn seconds(&self, range: &RangeInclusive<f64>) -> Option<Duration> {
        let bounds = format!("between {} and {} seconds", range.start(), range.end());
        match self.value() {
            Value::Number(number) => number
                .as_f64()
                .filter(|seconds| range.contains(seconds))
                .and_then(|seconds| Duration::try_from_secs_f64(seconds).ok())
                .or_else(|| self.mismatch(&bounds)),
            _ => self.mismatch(&format!("a number {bounds}")),
        }
    }

    /// Whether this is a number that the text spells as an integer.
    pub(crate) fn is_spelled_as_integer(&self) -> bool {
        let spelling = self.spelling().unwrap_or_default();
        let digits = spelling.trim_start_matches(['+', '-']);
        matches!(self.value(), Value::Number(_)) && digits.bytes().all(|byte| byte.is_ascii_digit())
    }
}
