//! The judge of the judge: what the scheduler does with tolerations, written again without CEL. From `ToleratesTaint` and
//! `compareNumericValues` in k8s.io/api/core/v1, and `ValidateTolerations` in k8s.io/kubernetes/pkg/apis/core/validation.

use serde_json::{Value, json};

/// Empty strings are fields that are not there.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Toleration {
    pub(crate) key: &'static str,
    pub(crate) operator: &'static str,
    pub(crate) value: &'static str,
    pub(crate) effect: &'static str,
}

/// A taint of a Node.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Taint {
    pub(crate) key: &'static str,
    pub(crate) value: &'static str,
    pub(crate) effect: &'static str,
}

impl Toleration {
    pub(crate) fn to_json(self) -> Value {
        let fields = [
            ("key", self.key),
            ("operator", self.operator),
            ("value", self.value),
            ("effect", self.effect),
        ];
        let given = fields.into_iter().filter(|(_, text)| !text.is_empty());
        given
            .map(|(name, text)| (name.to_owned(), json!(text)))
            .collect::<serde_json::Map<_, _>>()
            .into()
    }

    /// Whether it compares numbers.
    pub(crate) fn compares(self) -> bool {
        matches!(self.operator, "Lt" | "Gt")
    }

    /// Whether the API server takes it, of values that are those of labels.
    pub(crate) fn is_valid(self) -> bool {
        let has_key = !self.key.is_empty() || self.operator == "Exists";
        let has_value = match self.operator {
            "Exists" => self.value.is_empty(),
            _ if self.compares() => number(self.value).is_some(),
            _ => !self.value.starts_with('-'),
        };
        has_key && has_value
    }

    pub(crate) fn tolerates(self, taint: Taint) -> bool {
        if !self.effect.is_empty() && self.effect != taint.effect {
            return false;
        }
        if !self.key.is_empty() && self.key != taint.key {
            return false;
        }
        let numbers = number(self.value).zip(number(taint.value));
        match self.operator {
            "" | "Equal" => self.value == taint.value,
            "Exists" => true,
            "Lt" => numbers.is_some_and(|(own, taints)| taints < own),
            "Gt" => numbers.is_some_and(|(own, taints)| taints > own),
            _ => false,
        }
    }
}

/// A decimal integer as people write it.
fn number(text: &str) -> Option<i64> {
    let number: i64 = text.parse().ok()?;
    (number.to_string() == text).then_some(number)
}

/// The effects for which the scheduler keeps pods away: `DoNotScheduleTaintsFilterFunc`.
pub(crate) const BARRIERS: [&str; 2] = ["NoSchedule", "NoExecute"];

#[test]
fn numbers_are_compared_only_as_people_write_them() {
    for (text, expected) in [
        ("0", Some(0)),
        ("-7", Some(-7)),
        ("9223372036854775807", Some(i64::MAX)),
        ("9223372036854775808", None),
        ("007", None),
        ("-0", None),
        ("", None),
        ("five", None),
    ] {
        assert_eq!(number(text), expected, "{text}");
    }
}
