//! Taints and how a rule matches them. Pure.
//!
//! Two taints are the same if key and effect are (`Taint.MatchTaint`, k8s.io/api core/v1); a missing value and an
//! empty one are the same value.

use std::fmt;
use std::str::FromStr;

use k8s_openapi::api::core::v1::Taint;
use schemars::JsonSchema;
use serde::Serialize;

use crate::config::{Form, LABEL_VALUE, QUALIFIED_NAME, refuse_owned};

/// The effects that the API server accepts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
pub enum Effect {
    /// New pods that do not tolerate the taint are not scheduled here.
    NoSchedule,
    /// Such pods are scheduled here only if nowhere else is better.
    PreferNoSchedule,
    /// Such pods are not scheduled here, and running ones are evicted.
    NoExecute,
}

impl Effect {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::NoSchedule, Self::PreferNoSchedule, Self::NoExecute];

    /// As the API spells it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::NoSchedule => "NoSchedule",
            Self::PreferNoSchedule => "PreferNoSchedule",
            Self::NoExecute => "NoExecute",
        }
    }
}

impl FromStr for Effect {
    type Err = ();

    fn from_str(name: &str) -> Result<Self, ()> {
        Self::ALL
            .into_iter()
            .find(|effect| effect.as_str() == name)
            .ok_or(())
    }
}

/// Which taints a rule is about.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct TaintMatcher {
    /// The taint's key, matched exactly.
    #[schemars(transform = Form(&QUALIFIED_NAME), transform = refuse_owned)]
    pub key: String,
    /// Any if left out. `""` is exactly the empty value, which is the same as none.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(default, with = "String", transform = Form(&LABEL_VALUE))]
    pub value: Option<String>,
    /// Any if left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(default, with = "Effect")]
    pub effect: Option<Effect>,
}

impl TaintMatcher {
    /// Whether `taint` is one that the rule removes.
    #[must_use]
    pub fn matches(&self, taint: &Taint) -> bool {
        self.key == taint.key
            && self
                .value
                .as_deref()
                .is_none_or(|value| value == taint.value.as_deref().unwrap_or_default())
            && self
                .effect
                .is_none_or(|effect| effect.as_str() == taint.effect)
    }

    /// A taint that it matches: without value or effect, where any will do.
    #[must_use]
    pub fn to_taint(&self) -> Taint {
        let effect = self.effect.map_or("", Effect::as_str);
        Taint {
            key: self.key.clone(),
            value: self.value.clone().filter(|value| !value.is_empty()),
            effect: effect.into(),
            time_added: None,
        }
    }

    /// Whether some taint could match both.
    #[must_use]
    pub fn overlaps(&self, other: &Self) -> bool {
        fn agree<T: PartialEq>(one: Option<&T>, other: Option<&T>) -> bool {
            one.zip(other).is_none_or(|(one, other)| one == other)
        }
        self.key == other.key
            && agree(self.value.as_ref(), other.value.as_ref())
            && agree(self.effect.as_ref(), other.effect.as_ref())
    }
}

/// `KEY[=VALUE][:EFFECT]`, as `kubectl taint` writes it.
impl fmt::Display for TaintMatcher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.key)?;
        if let Some(value) = &self.value {
            write!(f, "={value}")?;
        }
        if let Some(effect) = self.effect {
            write!(f, ":{}", effect.as_str())?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taint(key: &str, value: Option<&str>, effect: Effect) -> Taint {
        Taint {
            key: key.into(),
            value: value.map(Into::into),
            effect: effect.as_str().into(),
            time_added: None,
        }
    }

    fn matcher(key: &str, value: Option<&str>, effect: Option<Effect>) -> TaintMatcher {
        TaintMatcher {
            key: key.into(),
            value: value.map(Into::into),
            effect,
        }
    }

    #[test]
    fn a_matcher_with_only_a_key_matches_every_value_and_effect_of_that_key_alone() {
        let any = matcher("k", None, None);
        assert!(any.matches(&taint("k", None, Effect::NoExecute)));
        assert!(any.matches(&taint("k", Some("true"), Effect::NoSchedule)));
        assert!(!any.matches(&taint("k2", None, Effect::NoSchedule)));
    }

    #[test]
    fn a_missing_value_and_an_empty_one_are_the_same_value() {
        let empty = matcher("k", Some(""), None);
        assert!(empty.matches(&taint("k", None, Effect::NoSchedule)));
        assert!(empty.matches(&taint("k", Some(""), Effect::NoSchedule)));
        assert!(!empty.matches(&taint("k", Some("true"), Effect::NoSchedule)));
    }

    #[test]
    fn a_named_effect_matches_that_effect_alone() {
        let one = matcher("k", None, Some(Effect::NoSchedule));
        assert!(one.matches(&taint("k", None, Effect::NoSchedule)));
        assert!(!one.matches(&taint("k", None, Effect::NoExecute)));
    }

    #[test]
    fn matchers_overlap_unless_they_ask_different_keys_values_or_effects() {
        let any = matcher("k", None, None);
        let valued = matcher("k", Some("a"), None);
        let effect = matcher("k", None, Some(Effect::NoExecute));
        assert!(any.overlaps(&valued) && valued.overlaps(&effect) && effect.overlaps(&any));
        assert!(!valued.overlaps(&matcher("k", Some("b"), None)));
        assert!(!effect.overlaps(&matcher("k", None, Some(Effect::NoSchedule))));
        assert!(!any.overlaps(&matcher("other", None, None)));
    }
}
