//! Expressions in CEL, of what Kubernetes 1.30 knows of it.

use super::yaml::{Message, Named, Validation};
use crate::manifests::Manifests;
use crate::manifests::marker::Marker;

/// A string. Whatever comes here from a configuration, keys and values of taints and labels and names of all kinds, has a
/// form without quotes and backslashes.
pub(super) fn string(text: &str) -> String {
    format!("'{text}'")
}

/// One that needs no words.
pub(super) fn plain(name: &'static str, expression: impl Into<String>) -> Named {
    Named {
        about: "",
        name,
        expression: expression.into(),
    }
}

/// By its name or its permissions alone: a token without claims must not slip past.
pub(super) fn account(manifests: &Manifests) -> Named {
    Named {
        about: "# By the name that was written, or by what its role alone grants, for where it was renamed. Whatever its token claims:
# one that claims nothing must not slip past.
",
        name: "account",
        expression: Marker::of(manifests).is_account(),
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
