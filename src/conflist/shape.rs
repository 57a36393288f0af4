//! Which JSON values Go's `encoding/json` accepts for a struct.

use serde_json::{Map, Value};

/// The type of a Go value. `null` is accepted for each and leaves the zero value.
pub(super) enum Shape {
    /// `interface{}`
    Any,
    /// `bool`
    Flag,
    /// `string`
    Text,
    /// A slice.
    List(&'static Self),
    /// A map with string keys.
    Map(&'static Self),
    /// A struct: its keys match in any case, other keys are ignored.
    Struct(&'static [(&'static str, Self)]),
}

impl Shape {
    /// `Err` is where `value` is not of this type.
    pub(super) fn check(&self, value: &Value) -> Result<(), String> {
        match (self, value) {
            (Self::Any, _)
            | (_, Value::Null)
            | (Self::Flag, Value::Bool(_))
            | (Self::Text, Value::String(_)) => Ok(()),
            (Self::List(item), Value::Array(values)) => {
                values.iter().try_for_each(|value| item.check(value))
            }
            (Self::Map(item), Value::Object(object)) => {
                object.values().try_for_each(|value| item.check(value))
            }
            (Self::Struct(fields), Value::Object(object)) => fields
                .iter()
                .try_for_each(|(key, shape)| check_field(object, key, shape)),
            _ => Err(format!("must be {}", self.expectation())),
        }
    }

    fn expectation(&self) -> &'static str {
        match self {
            Self::Any => "a value",
            Self::Flag => "true or false",
            Self::Text => "a string",
            Self::List(_) => "a list",
            Self::Map(_) | Self::Struct(_) => "an object",
        }
    }
}

/// The string at `key`, in any case; `None` for any other value.
pub(super) fn text<'a>(object: &'a Value, key: &str) -> Option<&'a str> {
    field(object, key)?.as_str()
}

/// The value at `key`, in any case.
pub(super) fn field<'a>(object: &'a Value, key: &str) -> Option<&'a Value> {
    spellings(object.as_object()?, key).next()
}

fn check_field(object: &Map<String, Value>, key: &str, shape: &Shape) -> Result<(), String> {
    let mut values = spellings(object, key);
    let Some(value) = values.next() else {
        return Ok(());
    };
    // Which one Go takes depends on their order in the file.
    if values.next().is_some() {
        return Err(format!("`{key}` appears in two spellings"));
    }
    shape
        .check(value)
        .map_err(|fault| format!("`{key}` {fault}"))
}

fn spellings<'a>(object: &'a Map<String, Value>, key: &str) -> impl Iterator<Item = &'a Value> {
    object
        .iter()
        .filter(move |(name, _)| name.eq_ignore_ascii_case(key))
        .map(|(_, value)| value)
}
