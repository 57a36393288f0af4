//! Expressions in CEL, of what Kubernetes 1.30 knows of it.

use crate::taint::TaintMatcher;

/// A string. Keys, values, labels and names have a form without quotes and backslashes.
pub(super) fn string(text: &str) -> String {
    format!("'{text}'")
}

/// Whether `taint`, a variable with a taint, is one that the matcher matches.
pub(super) fn matches(matcher: &TaintMatcher, taint: &str) -> String {
    let TaintMatcher { key, value, effect } = matcher;
    let mut parts = vec![format!("{taint}.key == {}", string(key))];
    if let Some(value) = value {
        let is = format!("{taint}.?value.orValue('') == {}", string(value));
        parts.push(is);
    }
    if let Some(effect) = effect {
        parts.push(format!("{taint}.effect == {}", string(effect.as_str())));
    }
    parts.join(" && ")
}

/// Whether one of these is so.
pub(super) fn any(expressions: impl IntoIterator<Item = String>) -> String {
    let expressions: Vec<_> = expressions.into_iter().collect();
    match expressions.as_slice() {
        [] => "false".into(),
        [one] => one.clone(),
        many => format!("({})", many.join(") || (")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::taint::Effect;

    fn matcher(value: Option<&str>, effect: Option<Effect>) -> TaintMatcher {
        TaintMatcher {
            key: "k".into(),
            value: value.map(Into::into),
            effect,
        }
    }

    #[test]
    fn a_taint_is_compared_by_what_the_matcher_names() {
        for (value, effect, expected) in [
            (None, None, "t.key == 'k'"),
            (Some(""), None, "t.key == 'k' && t.?value.orValue('') == ''"),
            (
                Some("v"),
                Some(Effect::NoExecute),
                "t.key == 'k' && t.?value.orValue('') == 'v' && t.effect == 'NoExecute'",
            ),
        ] {
            assert_eq!(matches(&matcher(value, effect), "t"), expected);
        }
    }

    #[test]
    fn of_no_expression_none_is_so() {
        let of = |expressions: &[&str]| any(expressions.iter().map(ToString::to_string));
        assert_eq!(of(&[]), "false");
        assert_eq!(of(&["a && b"]), "a && b");
        assert_eq!(of(&["a && b", "c"]), "(a && b) || (c)");
    }
}
