//! Taints and how a rule matches them. Pure.
//!
//! Two taints are the same if key and effect are (`Taint.MatchTaint`, k8s.io/api core/v1); a missing value and an
//! empty one are the same value.

use std::fmt;

use k8s_openapi::api::core::v1::Taint;
use schemars::{JsonSchema, Schema};
use serde::Serialize;
use serde_json::json;

use crate::syntax::{Form, LABEL_VALUE, QUALIFIED_NAME};
use crate::text::quoted;

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

    /// As in the API.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::NoSchedule => "NoSchedule",
            Self::PreferNoSchedule => "PreferNoSchedule",
            Self::NoExecute => "NoExecute",
        }
    }
}

/// Domains of keys, and which component removes their taints.
const OWNED: [(&str, &str); 4] = [
    (
        "node.kubernetes.io",
        "the kubelet and the node lifecycle controller",
    ),
    (
        "node.cloudprovider.kubernetes.io",
        "the cloud controller manager",
    ),
    (
        "node-role.kubernetes.io",
        "the program that gives nodes their roles",
    ),
    ("karpenter.sh", "Karpenter"),
];

/// Which taints a rule is about.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct TaintMatcher {
    /// The taint's key, matched exactly.
    #[schemars(transform = Form(&QUALIFIED_NAME), transform = refuse_owned)]
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

    /// What matches `taint` and no other.
    pub fn exactly(taint: &Taint) -> Option<Self> {
        let mut effects = Effect::ALL.into_iter();
        Some(Self {
            key: taint.key.clone(),
            value: Some(taint.value.clone().unwrap_or_default()),
            effect: Some(effects.find(|effect| effect.as_str() == taint.effect)?),
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

/// The prefixes of keys with which cluster-autoscaler counts a node as not started, and so as unready, however old it is
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

/// For the schema: keys in [`OWNED`] domains.
pub(crate) fn refuse_owned(key: &mut Schema) {
    let domains = OWNED.map(|(domain, _)| domain.replace('.', r"\."));
    let owned = format!("^({})/", domains.join("|"));
    key.insert("not".into(), json!({"pattern": owned}));
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
    let domain = key.split_once('/').map(|(domain, _)| domain);
    match OWNED.iter().find(|(owned, _)| domain == Some(owned)) {
        Some((_, owner)) => Err(format!(
            "must not be {}: only {owner} may remove this taint",
            quoted(key)
        )),
        None => Ok(key.to_owned()),
    }
}

pub(crate) fn parse_effect(name: &str) -> Result<Effect, String> {
    let mut all = Effect::ALL.into_iter();
    all.find(|effect| effect.as_str() == name)
        .ok_or_else(|| format!("must be {}, not {}", effects(), quoted(name)))
}

pub(crate) fn effects() -> String {
    format!(
        "one of {}, or left out for any",
        Effect::ALL.map(Effect::as_str).join(", ")
    )
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

    #[test]
    fn a_taint_is_read_as_kubectl_writes_it_and_displayed_the_same() {
        for (text, value, effect) in [
            ("example.com/a", None, None),
            ("example.com/a=", Some(""), None),
            ("example.com/a=b", Some("b"), None),
            ("example.com/a:NoExecute", None, Some(Effect::NoExecute)),
            (
                "example.com/a=:NoSchedule",
                Some(""),
                Some(Effect::NoSchedule),
            ),
            (
                "example.com/a=b:PreferNoSchedule",
                Some("b"),
                Some(Effect::PreferNoSchedule),
            ),
        ] {
            let taint = parse_taint(text).unwrap();
            assert_eq!(taint.key, "example.com/a");
            assert_eq!(taint.value.as_deref(), value, "{text}");
            assert_eq!(taint.effect, effect, "{text}");
            assert_eq!(taint.to_string(), text);
        }
    }

    #[test]
    fn a_taint_that_kubernetes_would_refuse_is_an_error_that_names_the_part() {
        for (text, part) in [
            ("", "its key must be"),
            ("a b", "its key must be"),
            ("a=b=c", "its value must be"),
            (
                "a=b:",
                "its effect must be one of NoSchedule, PreferNoSchedule, NoExecute, or left out for any, not \"\"",
            ),
            ("a:noexecute", "its effect must be"),
            ("a:NoExecute:x", "its effect must be"),
            ("example.com/a:NoExecute-", "its effect must be"),
        ] {
            let message = parse_taint(text).unwrap_err();
            assert!(message.starts_with(part), "{text}: {message}");
        }
    }

    #[test]
    fn keys_of_others_are_refused_naming_the_owner_and_similar_ones_are_not() {
        for (key, owner) in [
            ("node.kubernetes.io/not-ready", "kubelet"),
            (
                "node.cloudprovider.kubernetes.io/uninitialized",
                "cloud controller manager",
            ),
            ("node-role.kubernetes.io/control-plane", "roles"),
            ("karpenter.sh/unregistered", "Karpenter"),
        ] {
            let message = parse_taint(key).unwrap_err();
            assert!(message.contains(owner), "{key}: {message}");
        }
        for key in [
            "startup-taint.cluster-autoscaler.kubernetes.io/x",
            "readiness.k8s.io/x",
            "node.cilium.io/agent-not-ready",
            "x.karpenter.sh/y",
            "karpenter.sh",
        ] {
            assert!(parse_taint(key).is_ok(), "{key}");
        }
    }
}
