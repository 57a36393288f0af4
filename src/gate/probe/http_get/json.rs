//! Whether two JSON values are the same. Pure.

use serde_json::{Number, Value};

/// Compares numbers by their value: `1`, `1.0` and `1e0` are the same, and so are `0` and `-0`.
pub(super) fn equal(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Number(one), Value::Number(other)) => equal_numbers(one, other),
        (Value::Array(one), Value::Array(other)) => {
            one.len() == other.len() && one.iter().zip(other).all(|(one, other)| equal(one, other))
        }
        (Value::Object(one), Value::Object(other)) => {
            let is_in_other =
                |(name, one)| Option::is_some_and(other.get(name), |other| equal(one, other));
            one.len() == other.len() && one.iter().all(is_in_other)
        }
        _ => one == other,
    }
}

/// Integers are compared as such, because a float cannot tell large ones apart.
fn equal_numbers(one: &Number, other: &Number) -> bool {
    match (integer(one), integer(other)) {
        (Some(one), Some(other)) => one == other,
        (None, None) => one.as_f64() == other.as_f64(),
        _ => false,
    }
}

/// The number as an integer, if it is one. The parser gives larger integers as rounded floats, which equal no integer here.
fn integer(number: &Number) -> Option<i128> {
    const LIMIT: f64 = 9_223_372_036_854_775_808.0;
    let exact = number.as_i64().map(i128::from);
    exact
        .or_else(|| number.as_u64().map(i128::from))
        .or_else(|| {
            let float = number.as_f64()?;
            #[expect(
                clippy::cast_possible_truncation,
                reason = "it has no fraction and is within the limit"
            )]
            (float.fract() == 0.0 && float.abs() < LIMIT).then_some(float as i128)
        })
}
