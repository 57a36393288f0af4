//! Quantities of resources, such as `8`, `500m` or `4Gi` (apimachinery `pkg/api/resource/quantity.go`). Pure.

use crate::syntax::Syntax;

/// In billionths, the smallest unit that Kubernetes has. Two quantities of the same value are equal, however they are
/// written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Quantity(i128);

/// The most digits after the point that count. The API server writes none.
const FRACTION: usize = 18;
/// One has so many billionths, as a power of ten.
const ONE: i32 = 9;

impl Quantity {
    pub(crate) const ZERO: Self = Self(0);

    /// `None` if the text is no quantity. As in Kubernetes, what is smaller than the smallest unit is rounded up. What is
    /// too large for the number, or has too many digits, becomes the largest number.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
        let is_number = |c: char| c.is_ascii_digit() || c == '.';
        let (number, suffix) = match unsigned.find(|c| !is_number(c)) {
            Some(end) => unsigned.split_at(end),
            None => (unsigned, ""),
        };
        let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
        if fraction.contains('.') || whole.is_empty() && fraction.is_empty() {
            return None;
        }
        let (factor, power) = scale(suffix)?;
        let fraction = fraction.trim_end_matches('0');
        let kept = fraction.get(..FRACTION).unwrap_or(fraction);
        let digits = format!("{whole}{kept}");
        let digits = digits.trim_start_matches('0');
        let magnitude = match digits.parse::<i128>() {
            _ if digits.is_empty() => Some(i128::from(kept != fraction)),
            Ok(digits) => digits.checked_add(i128::from(kept != fraction)),
            Err(_) => None,
        };
        let places = i32::try_from(kept.len()).unwrap_or_default();
        let power = power.saturating_add(ONE - places);
        let magnitude = magnitude.and_then(|magnitude| magnitude.checked_mul(factor));
        let magnitude = magnitude.map_or(i128::MAX, |magnitude| shifted(magnitude, power));
        let is_negative = text.starts_with('-');
        Some(Self(if is_negative { -magnitude } else { magnitude }))
    }
}

/// What a suffix multiplies with: a factor, and a power of ten.
fn scale(suffix: &str) -> Option<(i128, i32)> {
    const DECIMAL: [(&str, i32); 10] = [
        ("n", -9),
        ("u", -6),
        ("m", -3),
        ("", 0),
        ("k", 3),
        ("M", 6),
        ("G", 9),
        ("T", 12),
        ("P", 15),
        ("E", 18),
    ];
    const BINARY: [&str; 6] = ["Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];
    if let Some((_, power)) = DECIMAL.iter().find(|(known, _)| *known == suffix) {
        return Some((1, *power));
    }
    if let Some(index) = BINARY.iter().position(|known| *known == suffix) {
        return Some((1 << (10 * (index + 1)), 0));
    }
    let exponent = suffix.strip_prefix(['e', 'E'])?;
    Some((1, exponent.parse().ok()?))
}

/// `number` times this power of ten, rounded up.
fn shifted(number: i128, power: i32) -> i128 {
    let factor = 10_i128.checked_pow(power.unsigned_abs());
    match factor {
        _ if number == 0 => 0,
        Some(factor) if power < 0 => number / factor + i128::from(number % factor != 0),
        None if power < 0 => 1,
        Some(factor) => number.saturating_mul(factor),
        None => i128::MAX,
    }
}

/// A quantity of which there is some.
pub(crate) const SOME: Syntax = Syntax {
    expected: "a quantity above 0 such as 8, 500m or 4Gi",
    longest: None,
    pattern: r"^\+?([0-9]*[1-9][0-9]*(\.[0-9]*)?|[0-9]*\.[0-9]*[1-9][0-9]*)([numkMGTPE]|[KMGTPE]i|[eE][-+]?[0-9]+)?$",
    holds: |text| Quantity::parse(text).is_some_and(|quantity| quantity > Quantity::ZERO),
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_of_one_value_are_equal_however_they_are_written() {
        for same in [
            &[
                "8", "+8", "08", "8.", "8.0", "8000m", "8e0", "80E-1", "0.8e1", "0.008k",
            ][..],
            &["4Gi", "4096Mi", "4.0Gi", "4294967296", "4294967296000m"],
            &["1.5Gi", "1536Mi"],
            &["1G", "1e9", "1E9", "1000M", "1e+9"],
            &["1E", "1e18", "1000P"],
            &["500m", "0.5", ".5", "500000u", "500000000n"],
            // Less than the smallest unit.
            &[
                "1n",
                "0.1n",
                "1e-12",
                "1e-999999999",
                "0.00000000000000000000001",
            ],
            &["0", "-0", "+0m", "0Ki", "0.000", ".0", "0e999999999"],
            &["-1", "-1000m"],
        ] {
            let values: Vec<_> = same.iter().map(|text| Quantity::parse(text)).collect();
            assert!(values[0].is_some(), "{same:?}");
            assert!(values.iter().all(|value| *value == values[0]), "{values:?}");
        }
    }

    #[test]
    fn quantities_are_compared_by_value() {
        let ordered = [
            "-2Ki",
            "-1",
            "0",
            "1n",
            "1u",
            "1m",
            "999m",
            "1",
            "7",
            "7.5",
            "8",
            "10",
            "1k",
            "1Ki",
            "1M",
            "1Mi",
            "1G",
            "1Gi",
            "1T",
            "1Ti",
            "1P",
            "1Pi",
            "1E",
            "1Ei",
            "7Ei",
            "9223372036854775807",
            "200000000000000000000",
            "1000000000000000000000.000000000000000001",
        ];
        let values: Vec<_> = ordered
            .iter()
            .map(|text| Quantity::parse(text).unwrap())
            .collect();
        assert!(values.is_sorted_by(|one, other| one < other), "{values:?}");
        // What is too large for the number.
        let most = Quantity::parse("1e999999999").unwrap();
        let (too_long, shorter) = values.split_last().unwrap();
        assert!(shorter.iter().all(|value| *value < most));
        assert_eq!(*too_long, most);
        for text in [
            "9".repeat(60).as_str(),
            "200000000000000000000.0000000000000000001",
            "2000000000.000000000000000001Ei",
        ] {
            assert_eq!(Quantity::parse(text), Some(most), "{text}");
        }
    }

    #[test]
    fn what_is_no_quantity_is_not_read_as_one() {
        for text in [
            "",
            "+",
            "-",
            ".",
            "Ki",
            "m",
            "e3",
            "--1",
            "+-1",
            "1.2.3",
            "1 ",
            " 1",
            "1ki",
            "1K",
            "1e",
            "1e1.5",
            "1ee3",
            "1Kim",
            "0x8",
            "1_000",
            "eight",
            "1,5",
            "1e99999999999999",
            "1\u{661}",
            "1é",
        ] {
            assert_eq!(Quantity::parse(text), None, "{text:?}");
        }
    }
}
