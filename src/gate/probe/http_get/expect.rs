//! What is expected of an answer. Pure.

use http::StatusCode;
use serde_json::Value;

use super::json;
use crate::config::Expect;
use crate::text::{excerpt, http_status};

/// Bytes of a body that are read. The kubelet's 10 KiB would cut off the full status of a Cilium agent.
const BODY_LIMIT: usize = 1024 * 1024;
/// The same where nothing is expected of the body, as in the kubelet (pkg/probe/http `maxRespBodyLength`).
const UNEXPECTED_BODY_LIMIT: usize = 10 * 1024;

/// The beginning of a body.
#[derive(Debug, Default)]
pub(super) struct Body {
    bytes: Vec<u8>,
    pub(super) truncated: bool,
}

impl Body {
    /// Adds what arrived, and truncates it at `limit`.
    pub(super) fn add(&mut self, data: &[u8], limit: usize) {
        let room = limit - self.bytes.len();
        self.bytes.extend_from_slice(&data[..data.len().min(room)]);
        self.truncated = data.len() > room;
    }
}

/// Whether `status` is expected by its own number. A redirect that is named so is the answer. A range such as `200-399`
/// only says that redirects are no failure: they are followed.
pub(super) fn names(expect: &Expect, status: StatusCode) -> bool {
    let code = status.as_u16();
    expect
        .status
        .iter()
        .any(|range| (range.first, range.last) == (code, code))
}

pub(super) fn status(expect: &Expect, status: StatusCode) -> Result<(), String> {
    let mut ranges = expect.status.iter();
    if ranges.any(|range| range.contains(status.as_u16())) {
        return Ok(());
    }
    let ranges: Vec<_> = expect.status.iter().map(ToString::to_string).collect();
    let status = http_status(status);
    Err(format!("{status}, expected {}", ranges.join(", ")))
}

/// How much of the body is read, in bytes.
pub(super) fn body_limit(expect: &Expect) -> usize {
    if expect.text.is_some() || !expect.json.is_empty() {
        BODY_LIMIT
    } else {
        UNEXPECTED_BODY_LIMIT
    }
}

pub(super) fn body(expect: &Expect, body: &Body) -> Result<(), String> {
    if let Some(text) = &expect.text {
        contains(body, text)?;
    }
    if expect.json.is_empty() {
        return Ok(());
    }
    if body.truncated {
        return Err(format!(
            "the body is not JSON of at most {BODY_LIMIT} bytes"
        ));
    }
    let document: Value = serde_json::from_slice(&body.bytes)
        .map_err(|error| format!("the body is not JSON: {error}"))?;
    expect
        .json
        .iter()
        .try_for_each(|(pointer, value)| equals(&document, pointer, value))
}

fn contains(body: &Body, text: &str) -> Result<(), String> {
    if String::from_utf8_lossy(&body.bytes).contains(text) {
        return Ok(());
    }
    let text = excerpt(text);
    Err(if body.truncated {
        format!("the first {BODY_LIMIT} bytes of the body do not contain \"{text}\"")
    } else {
        format!("the body does not contain \"{text}\"")
    })
}

fn equals(document: &Value, pointer: &str, expected: &Value) -> Result<(), String> {
    let found = document.pointer(pointer);
    if found.is_some_and(|found| json::equal(found, expected)) {
        return Ok(());
    }
    let found = found.map_or("missing".into(), |found| excerpt(&found.to_string()));
    let expected = excerpt(&expected.to_string());
    Err(format!("{pointer} is {found}, expected {expected}"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::config::StatusRange;

    fn body_of(bytes: &[u8]) -> Body {
        let mut body = Body::default();
        body.add(bytes, BODY_LIMIT);
        body
    }

    fn json(bytes: &[u8], pointer: &str, value: Value) -> Result<(), String> {
        let expect = Expect {
            json: [(pointer.to_owned(), value)].into(),
            ..Expect::default()
        };
        body(&expect, &body_of(bytes))
    }

    fn text(bytes: &[u8], text: &str) -> Result<(), String> {
        let expect = Expect {
            text: Some(text.into()),
            ..Expect::default()
        };
        body(&expect, &body_of(bytes))
    }

    #[test]
    fn a_json_pointer_must_lead_to_the_value() {
        let document = br#"{"a/b":[{"state":"Ok"},null]}"#;
        assert_eq!(json(document, "/a~1b/0/state", json!("Ok")), Ok(()));
        assert_eq!(json(document, "/a~1b/1", Value::Null), Ok(()));
        assert_eq!(
            json(document, "/a~1b/0/state", json!("Failure")).unwrap_err(),
            r#"/a~1b/0/state is "Ok", expected "Failure""#
        );
        assert_eq!(
            json(document, "/a~1b/2", Value::Null).unwrap_err(),
            "/a~1b/2 is missing, expected null"
        );
    }

    #[test]
    fn json_numbers_are_equal_if_their_values_are() {
        let mut failures = Vec::new();
        for (found, expected, is_equal) in [
            ("1", json!(1.0), true),
            ("1.0", json!(1), true),
            ("1e0", json!(1), true),
            ("10e-1", json!(1), true),
            ("-0", json!(0), true),
            ("-0.0", json!(0), true),
            ("0", json!(-0.0), true),
            ("-1.0", json!(-1), true),
            ("-1", json!(1), false),
            ("1.5", json!(1), false),
            ("1", json!(1.5), false),
            ("0.1", json!(0.1), true),
            ("1e21", json!(1e21), true),
            ("1e3", json!(1000), true),
            ("1.23456789012345678", json!(1.234_567_890_123_456_8), true),
            // The integers around 2^53, which a float cannot tell apart.
            ("9007199254740993", json!(9_007_199_254_740_992_u64), false),
            ("9007199254740993", json!(9_007_199_254_740_992.0), false),
            (
                "9007199254740992.0",
                json!(9_007_199_254_740_993_u64),
                false,
            ),
            ("9007199254740992.0", json!(9_007_199_254_740_992_u64), true),
            ("-9007199254740993", json!(-9_007_199_254_740_992.0), false),
            ("18446744073709551615", json!(u64::MAX), true),
            ("18446744073709551614", json!(u64::MAX), false),
            ("18446744073709551616", json!(u64::MAX), false),
            (
                "18446744073709551615",
                json!(18_446_744_073_709_551_616.0),
                false,
            ),
            ("-9223372036854775808", json!(i64::MIN), true),
            ("-9223372036854775809", json!(i64::MIN), false),
            ("[1,{\"a\":2.0}]", json!([1.0, {"a": 2}]), true),
            ("[1]", json!([1.0, 2]), false),
            ("{\"a\":1,\"b\":2}", json!({"a": 1}), false),
            ("{\"a\":1}", json!({"b": 1}), false),
            ("\"1\"", json!(1), false),
            ("true", json!(1), false),
        ] {
            if json(found.as_bytes(), "", expected.clone()).is_ok() != is_equal {
                failures.push(format!("{found} and {expected}"));
            }
        }
        assert!(failures.is_empty(), "{failures:#?}");
    }

    #[test]
    fn a_long_value_is_shortened_in_the_reason() {
        let document = format!("[\"{}\"]", "x".repeat(10_000));
        let reason = json(document.as_bytes(), "", json!(1)).unwrap_err();
        assert!(reason.len() < 300 && reason.ends_with("…, expected 1"));
    }

    #[test]
    fn a_body_that_is_no_json_has_no_values() {
        let nested = "[".repeat(100_000);
        for bytes in ["", "{", "<html>", "{} {}", "\u{0}", &nested] {
            let reason = json(bytes.as_bytes(), "", json!({})).unwrap_err();
            assert!(reason.starts_with("the body is not JSON: "), "{reason}");
        }
    }

    #[test]
    fn json_beyond_the_limit_is_cut_off_and_says_so() {
        let mut bytes = b"1".to_vec();
        bytes.resize(BODY_LIMIT, b' ');
        assert_eq!(json(&bytes, "", json!(1)), Ok(()));
        bytes.push(b' ');
        assert_eq!(
            json(&bytes, "", json!(1)).unwrap_err(),
            "the body is not JSON of at most 1048576 bytes"
        );
    }

    #[test]
    fn text_must_be_within_what_is_read_and_the_rest_may_be_binary() {
        assert_eq!(text(b"\xff\xfe ready \x00", "ready"), Ok(()));
        assert_eq!(
            text(b"starting", "ready").unwrap_err(),
            "the body does not contain \"ready\""
        );
        let mut bytes = vec![b' '; BODY_LIMIT];
        bytes.extend(b"ready");
        assert_eq!(
            text(&bytes, "ready").unwrap_err(),
            "the first 1048576 bytes of the body do not contain \"ready\""
        );
    }

    #[test]
    fn a_status_must_be_in_a_range() {
        let expect = Expect {
            status: vec![
                StatusRange {
                    first: 200,
                    last: 299,
                },
                StatusRange {
                    first: 404,
                    last: 404,
                },
            ],
            ..Expect::default()
        };
        assert_eq!(status(&expect, StatusCode::NO_CONTENT), Ok(()));
        assert_eq!(status(&expect, StatusCode::NOT_FOUND), Ok(()));
        assert_eq!(
            status(&expect, StatusCode::SERVICE_UNAVAILABLE).unwrap_err(),
            "503 Service Unavailable, expected 200-299, 404"
        );
    }
}
