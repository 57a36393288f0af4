//! What a ServiceAccount token says of the pod that has it. Pure.

use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use http::HeaderValue;
use serde_json::Value;

/// The uid of the pod to which the token in this `Authorization` header is bound (kubernetes `pkg/serviceaccount/claims.go`,
/// `privateClaims`). `None` for any other token. Nothing checks the signature: this is the own token.
pub(super) fn pod(authorization: &HeaderValue) -> Option<String> {
    let token = authorization.to_str().ok()?.strip_prefix("Bearer ")?;
    let claims = token.split('.').nth(1)?;
    let claims = BASE64_URL_SAFE_NO_PAD.decode(claims).ok()?;
    let claims: Value = serde_json::from_slice(&claims).ok()?;
    let uid = claims.pointer("/kubernetes.io/pod/uid")?;
    uid.as_str().map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_token_that_is_bound_to_a_pod_has_its_uid() {
        let token = |claims: &Value| {
            let claims = BASE64_URL_SAFE_NO_PAD.encode(claims.to_string());
            format!("Bearer eyJhbGciOiJSUzI1NiJ9.{claims}.c2lnbmF0dXJl")
        };
        let bound = json!({"kubernetes.io": {"namespace": "untaint", "pod": {"name": "p", "uid": "1-2?ö>"}}});
        for (header, expected) in [
            (token(&bound), Some("1-2?ö>")),
            (
                token(&json!({"kubernetes.io": {"node": {"name": "n", "uid": "1"}}})),
                None,
            ),
            (token(&json!({"kubernetes.io": {"pod": {"uid": 1}}})), None),
            (token(&json!([])), None),
            ("Bearer opaque".into(), None),
            ("Bearer a.b.c".into(), None),
            ("Bearer ..".into(), None),
            ("Basic dXNlcjpwYXNzd29yZA==".into(), None),
        ] {
            let found = pod(&HeaderValue::from_str(&header).unwrap());
            assert_eq!(found.as_deref(), expected, "{header}");
        }
    }
}
