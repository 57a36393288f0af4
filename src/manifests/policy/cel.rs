//! Expressions in CEL, of what Kubernetes 1.30 knows of it.

use super::yaml::{Message, Named, Validation};
use crate::manifests::Account;
use crate::taint::TaintMatcher;

/// A string. Whatever comes here from a configuration, keys and values of taints and labels and names of all kinds, has a
/// form without quotes and backslashes.
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
        many => format!("({})", many.join(") ||\n(")),
    }
}

/// By its name alone: a token without claims must not slip past.
pub(super) fn account(account: &Account) -> Named {
    Named {
        about: "# Whatever its token claims: one that claims nothing must not slip past.\n",
        name: "account",
        expression: format!("request.userInfo.username == {}", string(&account.user())),
    }
}

/// What the token says of what it is for; empty if nothing.
pub(super) fn claim(name: &str) -> String {
    let claim = string(&format!("authentication.kubernetes.io/{name}"));
    format!("request.userInfo.?extra[?{claim}][?0].orValue('')")
}

/// The variable `node`.
pub(super) fn node() -> Named {
    Named {
        about: "# The Node of the pod that the token was made for.\n",
        name: "node",
        expression: claim("node-name"),
    }
}

/// The token says for which Node it is.
pub(super) fn has_node() -> Validation {
    Validation {
        about: "",
        expression: "variables.node != ''".into(),
        message: Message::Text(
            "this token does not say for which Node it is: it has no claim authentication.kubernetes.io/node-name; \
             those that pods are given have it from Kubernetes 1.30 on, those in Secrets never"
                .into(),
        ),
    }
}

/// `field` of the object is as it was, but for these of its fields: compared both ways, without a list of what there is.
pub(super) fn same_but(field: &str, fields: &[&str]) -> String {
    let (new, old) = (
        format!("dyn(object.{field})"),
        format!("dyn(oldObject.{field})"),
    );
    let fields: Vec<_> = fields.iter().map(|field| string(field)).collect();
    let fields = fields.join(", ");
    format!(
        "{new}.all(f, f in [{fields}] ||\n  \
         f in {old} && {new}[f] == {old}[f]) &&\n\
         {old}.all(f, f in [{fields}] || f in {new})"
    )
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
        assert_eq!(of(&["a && b", "c"]), "(a && b) ||\n(c)");
    }
}
