//! Taints and how a rule matches them. Pure.
//!
//! Two taints are the same if key and effect are (`Taint.MatchTaint`, k8s.io/api core/v1); a missing value and an
//! empty one are the same value.

mod owners;

use std::fmt;

use k8s_openapi::api::core::v1::Taint;
use schemars::JsonSchema;
use serde::Serialize;

use crate::syntax::{Form, LABEL_VALUE, QUALIFIED_NAME};
use crate::text::quoted;

pub(crate) use owners::refuse as refuse_owned;
pub use owners::{OWNERS, Owner, owner_of};

/// The effects that the API server accepts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
pub enum Effect {
    /// New pods that do not tolerate the taint are not scheduled here.
    NoSchedule,
    /// Such pods are scheduled here only if no other node is better.
    PreferNoSchedule,
    /// Such pods are not scheduled here, and running ones are evicted.
    NoExecute,
}

impl Effect {
    pub const ALL: [Self; 3] = [Self::NoSchedule, Self::PreferNoSchedule, Self::NoExecute];

    /// The effect that the API calls so.
    fn named(name: &str) -> Option<Self> {
        let mut all = Self::ALL.into_iter();
        all.find(|effect| effect.as_str() == name)
    }

    /// As in the API.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::NoSchedule => "NoSchedule",
            Self::PreferNoSchedule => "PreferNoSchedule",
            Self::NoExecute => "NoExecute",
        }
    }
}

/// Which taints a rule is about.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct TaintMatcher {
    /// The taint's key, matched exactly.
    #[schemars(transform = Form(&QUALIFIED_NAME), transform = owners::refuse)]
    pub key: String,
    /// If left out, any value matches. `""` matches only a taint without a value.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(default, with = "String", transform = Form(&LABEL_VALUE))]
    pub value: Option<String>,
    /// If left out, any effect matches.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(default, with = "Effect")]
    pub effect: Option<Effect>,
}

impl TaintMatcher {
    /// Whether `taint` is one that the rule removes.
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

    /// A taint that it matches. Where any value or effect matches, the taint has none.
    pub fn to_taint(&self) -> Taint {
        let effect = self.effect.map_or("", Effect::as_str);
        Taint {
            key: self.key.clone(),
            value: self.value.clone().filter(|value| !value.is_empty()),
            effect: effect.into(),
            time_added: None,
        }
    }

    /// What matches `taint` and no other. `None` if its effect is none of [`Effect`].
    pub fn exactly(taint: &Taint) -> Option<Self> {
        Some(Self {
            key: taint.key.clone(),
            value: Some(taint.value.clone().unwrap_or_default()),
            effect: Some(Effect::named(&taint.effect)?),
        })
    }

    /// Whether some taint could match both.
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

/// `KEY[=VALUE]:EFFECT`, as `kubectl taint` writes it.
pub fn written(taint: &Taint) -> String {
    let Taint { key, effect, .. } = taint;
    match taint.value.as_deref().unwrap_or_default() {
        "" => format!("{key}:{effect}"),
        value => format!("{key}={value}:{effect}"),
    }
}

/// The prefixes of keys with which Cluster Autoscaler counts a node as not started, and so as unready, however old it is
/// (`IsStartupTaint` and `FilterOutNodesWithStartupTaints`, cluster-autoscaler `utils/taints/taints.go`).
const STARTUP_PREFIXES: [&str; 2] = [
    "startup-taint.cluster-autoscaler.kubernetes.io/",
    "ignore-taint.cluster-autoscaler.kubernetes.io/",
];

/// The name in a key with one of [`STARTUP_PREFIXES`].
pub(crate) fn startup_name(key: &str) -> Option<&str> {
    let mut prefixes = STARTUP_PREFIXES.into_iter();
    prefixes.find_map(|prefix| key.strip_prefix(prefix))
}

/// Reads `KEY[=VALUE][:EFFECT]`, as `kubectl taint` writes it. `KEY=` asks for the empty value, `KEY` for any.
///
/// The error is a sentence for the person who typed it.
pub fn parse_taint(text: &str) -> Result<TaintMatcher, String> {
    let (taint, effect) = split(text, ':');
    let (key, value) = split(taint, '=');
    let named = |field: &'static str| move |message: String| format!("its {field} {message}");
    let value = value.map(|value| LABEL_VALUE.parse(value)).transpose();
    let effect = effect.map(parse_effect).transpose();
    Ok(TaintMatcher {
        key: parse_key(key).map_err(named("key"))?,
        value: value.map_err(named("value"))?,
        effect: effect.map_err(named("effect"))?,
    })
}

fn split(text: &str, separator: char) -> (&str, Option<&str>) {
    let parts = text.split_once(separator);
    parts.map_or((text, None), |(before, after)| (before, Some(after)))
}

pub(crate) fn parse_key(key: &str) -> Result<String, String> {
    QUALIFIED_NAME.check(key)?;
    owners::check(key)?;
    Ok(key.to_owned())
}

pub(crate) fn parse_effect(name: &str) -> Result<Effect, String> {
    Effect::named(name).ok_or_else(|| format!("must be {}, not {}", effects(), quoted(name)))
}

pub(crate) fn effects() -> String {
    format!(
        "one of {}, or left out for any",
        Effect::ALL.map(Effect::as_str).join(", ")
    )
}

#[cfg(test)]
mod tests;
