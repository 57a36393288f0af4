//! What an HTTP answer must be.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Serialize;
use serde_json::Value as Json;

use crate::config::read::{Cursor, Value};
use crate::syntax::{JSON_POINTER, SEARCHED_TEXT};

/// Conditions on an HTTP answer; all must hold.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(default)]
pub struct Expect {
    /// Status codes such as `204`, or ranges such as `200-299`, from 100 to 599.
    #[schemars(length(min = 1))]
    pub status: Vec<StatusRange>,
    /// JSON pointers (RFC 6901) into the body. Each maps to the value that must be there.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(transform = json_pointers)]
    pub json: BTreeMap<String, Json>,
    /// Text that the body must contain.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String", extend("pattern" = SEARCHED_TEXT.pattern))]
    pub text: Option<String>,
}

fn json_pointers(schema: &mut Schema) {
    schema.insert("propertyNames".into(), JSON_POINTER.schema().into());
}

impl Default for Expect {
    fn default() -> Self {
        Self {
            status: vec![StatusRange {
                first: 200,
                last: 299,
            }],
            json: BTreeMap::new(),
            text: None,
        }
    }
}

impl Expect {
    pub(super) fn read(cursor: &Cursor<'_>) -> Option<Self> {
        cursor.mapping("expect", |fields| {
            Some(Self {
                status: fields.or("status", Self::default().status, |codes| {
                    codes.filled_list(StatusRange::read)
                }),
                json: fields.or("json", BTreeMap::new(), |values| {
                    let values = values.entries("")?.into_iter();
                    let values = values.filter_map(|(pointer, value)| {
                        if let Err(message) = JSON_POINTER.check(pointer) {
                            value.report_key(message);
                        }
                        Some((pointer.to_owned(), json(&value)?))
                    });
                    Some(values.collect())
                }),
                text: fields.optional("text", |text| text.text(&SEARCHED_TEXT)),
            })
        })
    }
}

fn json(cursor: &Cursor<'_>) -> Option<Json> {
    Some(match cursor.value() {
        Value::Null => Json::Null,
        Value::Bool(value) => Json::Bool(*value),
        // Larger integers would be rounded.
        Value::Number(number) if number.is_f64() && cursor.is_spelled_as_integer() => {
            return cursor.mismatch("an integer of at most 64 bits");
        }
        Value::Number(number) => Json::Number(number.clone()),
        Value::NotFinite => return cursor.mismatch("a finite number"),
        Value::String(text) => Json::String(text.clone()),
        Value::List(_) => Json::Array(cursor.list(json)?),
        Value::Map(_) => {
            let members = cursor.entries("")?.into_iter();
            let members =
                members.filter_map(|(name, value)| Some((name.to_owned(), json(&value)?)));
            Json::Object(members.collect())
        }
    })
}

/// Status codes from `first` to `last`, both included; written `204` or `200-299`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StatusRange {
    /// From 100.
    pub first: u16,
    /// To 599.
    pub last: u16,
}

impl StatusRange {
    const LEAST: u16 = 100;
    const MOST: u16 = 599;

    pub fn contains(self, code: u16) -> bool {
        (self.first..=self.last).contains(&code)
    }

    fn read(cursor: &Cursor<'_>) -> Option<Self> {
        let range = match cursor.value() {
            Value::Number(code) => {
                let code = code.as_u64().and_then(|code| u16::try_from(code).ok());
                code.map(|code| (code, code))
            }
            Value::String(text) => text
                .split_once('-')
                .and_then(|(first, last)| Some((three_digits(first)?, three_digits(last)?))),
            _ => None,
        };
        match range {
            Some((first, last)) if Self::LEAST <= first && first <= last && last <= Self::MOST => {
                Some(Self { first, last })
            }
            _ => cursor.mismatch(
                "a status code or a range of them, between 100 and 599, such as 204 or 200-299",
            ),
        }
    }
}

/// [`str::parse`] also reads a sign and more digits.
fn three_digits(text: &str) -> Option<u16> {
    let is_code = text.len() == 3 && text.bytes().all(|byte| byte.is_ascii_digit());
    is_code.then(|| text.parse().ok()).flatten()
}

impl fmt::Display for StatusRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.first == self.last {
            write!(f, "{}", self.first)
        } else {
            write!(f, "{}-{}", self.first, self.last)
        }
    }
}

impl Serialize for StatusRange {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if self.first == self.last {
            serializer.serialize_u16(self.first)
        } else {
            serializer.collect_str(self)
        }
    }
}

impl JsonSchema for StatusRange {
    fn schema_name() -> Cow<'static, str> {
        "StatusRange".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": ["integer", "string"],
            "minimum": Self::LEAST,
            "maximum": Self::MOST,
            "pattern": "^[1-5][0-9][0-9]-[1-5][0-9][0-9]$",
        })
    }
}
