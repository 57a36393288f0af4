//! The YAML text as a tree of nodes that know their place in it.

use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::Number;
use serde_yaml::options::{DuplicateKeyPolicy, MergeKeyPolicy, NonFiniteFloatPolicy};
use serde_yaml::{Error, MessageFormatter, Options, Spanned, UserMessageFormatter};

use super::problem::Problem;

/// A value and its place. Behind an alias, `defined` is the place of the anchored text, which an operator must edit.
pub(super) type Node = Spanned<Value>;

/// A value of YAML's core schema.
#[derive(Debug)]
pub(crate) enum Value {
    Null,
    Bool(bool),
    Number(Number),
    /// `.inf`, `.nan`, or a number beyond the limits of a float.
    NotFinite,
    String(String),
    List(Vec<Node>),
    /// In the order of the text; keys may be anything and may repeat.
    Map(Vec<(Node, Node)>),
}

/// In nodes, aliases expanded, of all texts together. A rule with three gates is about a hundred.
pub(super) const MAX_SIZE: usize = 50_000;

/// In nested lists and mappings, aliases expanded; each level costs stack. JSON that a gate expects begins at 11.
const MAX_DEPTH: usize = 32;

/// The number of nodes.
pub(super) fn size(node: &Node) -> usize {
    1 + match &node.value {
        Value::List(nodes) => nodes.iter().map(size).sum(),
        Value::Map(pairs) => pairs.iter().map(|(key, node)| size(key) + size(node)).sum(),
        _ => 0,
    }
}

/// Reads one YAML document. The error is the first problem of its syntax, because the parser cannot continue after it.
pub(super) fn read(text: &str) -> Result<Node, Problem> {
    serde_yaml::from_str_with_options(text, options()).map_err(|error| {
        let place = error.location().map(|at| (at.line(), at.column()));
        let message = explain(&error);
        Problem { place, message }
    })
}

fn options() -> Options {
    serde_yaml::options! {
        budget: serde_yaml::budget! { max_nodes: MAX_SIZE, max_depth: MAX_DEPTH },
        alias_limits: serde_yaml::alias_limits! { max_total_replayed_events: MAX_SIZE },
        // `Cursor::entries` reports them, with all other problems.
        duplicate_keys: DuplicateKeyPolicy::PassThrough,
        merge_keys: MergeKeyPolicy::Error,
        // YAML 1.2: `yes` and `0755` are strings.
        strict_booleans: true,
        leading_zero_numbers_as_strings: true,
        underscored_numbers_as_strings: true,
        reject_unsupported_tags: true,
        // `Cursor` reports them, with the paths of their fields.
        non_finite_float_policy: NonFiniteFloatPolicy::PassThrough,
        with_snippet: false,
    }
}

/// The parser's message, in words for an operator where it speaks to a programmer.
fn explain(error: &Error) -> String {
    match error {
        Error::MultipleDocuments { .. } => {
            "a second document begins here; the file must have only one: move its rules into the first"
                .into()
        }
        Error::MergeKeyNotAllowed { .. } => {
            "merge keys (<<) are not supported; write the fields out".into()
        }
        // It may be a secret without its quotes.
        Error::UnsupportedTag { .. } => {
            "tags are not supported; quote a text that begins with '!'".into()
        }
        Error::RecursiveReferencesRequireWeakTypes { .. } => {
            "an alias inside the value that its anchor names".into()
        }
        other => UserMessageFormatter
            .format_message(other)
            .replace(char::is_control, " "),
    }
}

impl<'de> Deserialize<'de> for Value {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ValueVisitor)
    }
}

struct ValueVisitor;

impl<'de> Visitor<'de> for ValueVisitor {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(Value::Number(value.into()))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(Value::Number(value.into()))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(Number::from_f64(value).map_or(Value::NotFinite, Value::Number))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(Value::String(value.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Value, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = seq.next_element()? {
            items.push(item);
        }
        Ok(Value::List(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Value, A::Error> {
        let mut entries = Vec::new();
        while let Some(entry) = map.next_entry()? {
            entries.push(entry);
        }
        Ok(Value::Map(entries))
    }
}
