//! Taints as the file and the command line name them.

use schemars::Schema;
use serde_json::json;

use super::cursor::Cursor;
use super::syntax::{LABEL_VALUE, QUALIFIED_NAME, shown};
use crate::taint::{Effect, TaintMatcher};

/// Domains whose taints are someone else's statement about a node, and whose they are.
const OWNED: [(&str, &str); 4] = [
    (
        "node.kubernetes.io",
        "the kubelet and the node lifecycle controller",
    ),
    (
        "node.cloudprovider.kubernetes.io",
        "the cloud controller manager",
    ),
    ("node-role.kubernetes.io", "whoever gives nodes their roles"),
    ("karpenter.sh", "Karpenter"),
];

pub(super) fn matcher(cursor: &Cursor<'_>) -> Option<TaintMatcher> {
    cursor.mapping("a taint", |fields| {
        let key = fields.required("key");
        let effect = fields.optional("effect");
        let value = fields.optional("value");

        let key = key.and_then(|key| key.parsed(parse_key));
        let effect = effect.map(|field| effect_of(&field));
        let value = value.map(|field| value_of(&field));
        Some(TaintMatcher {
            key: key?,
            // Left out is any; wrong is not.
            value: value.map_or(Some(None), |read| read.map(Some))?,
            effect: effect.map_or(Some(None), |read| read.map(Some))?,
        })
    })
}

/// Keys of others, for the schema.
pub(crate) fn refuse_owned(key: &mut Schema) {
    let domains = OWNED.map(|(domain, _)| domain.replace('.', r"\."));
    let owned = format!("^({})/", domains.join("|"));
    key.insert("not".into(), json!({"pattern": owned}));
}

fn effect_of(cursor: &Cursor<'_>) -> Option<Effect> {
    if cursor.is_null() {
        return cursor.mismatch(&effects());
    }
    cursor.parsed(parse_effect)
}

fn value_of(cursor: &Cursor<'_>) -> Option<String> {
    if cursor.is_null() {
        cursor.report("has no value: write \"\" for exactly empty, or leave it out for any");
        return None;
    }
    cursor.text(&LABEL_VALUE)
}

/// Reads `KEY[=VALUE][:EFFECT]`, as `kubectl taint` writes it. `KEY=` asks for the empty value, `KEY` for any.
///
/// The error is a sentence for the person who typed it.
pub fn parse_taint(text: &str) -> Result<TaintMatcher, String> {
    let (taint, effect) = split(text, ':');
    let (key, value) = split(taint, '=');
    let named = |field: &'static str| move |message: String| format!("its {field} {message}");
    if let Some(value) = value {
        LABEL_VALUE.check(value).map_err(named("value"))?;
    }
    Ok(TaintMatcher {
        key: parse_key(key).map_err(named("key"))?,
        value: value.map(str::to_owned),
        effect: effect
            .map(parse_effect)
            .transpose()
            .map_err(named("effect"))?,
    })
}

fn split(text: &str, separator: char) -> (&str, Option<&str>) {
    match text.split_once(separator) {
        Some((before, after)) => (before, Some(after)),
        None => (text, None),
    }
}

fn parse_key(key: &str) -> Result<String, String> {
    QUALIFIED_NAME.check(key)?;
    let domain = key.split_once('/').map(|(domain, _)| domain);
    match OWNED.iter().find(|(owned, _)| domain == Some(owned)) {
        Some((_, owner)) => Err(format!(
            "must not be {}: it is for {owner} to remove",
            shown(key)
        )),
        None => Ok(key.to_owned()),
    }
}

fn parse_effect(name: &str) -> Result<Effect, String> {
    name.parse()
        .map_err(|()| format!("must be {}, not {}", effects(), shown(name)))
}

fn effects() -> String {
    format!(
        "one of {}, or left out for any",
        Effect::ALL.map(Effect::as_str).join(", ")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

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
