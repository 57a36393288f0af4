//! Reads a value of the tree, and knows the path of fields that leads there.

use std::collections::HashMap;
use std::path::PathBuf;

use super::advice;
use super::problem::Problem;
use super::source::Source;
use super::tree::{Node, Value};
use crate::syntax::{ABSOLUTE_PATH, Syntax};
use crate::text::{excerpt, quoted};

/// A value in the tree.
#[derive(Clone)]
pub(crate) struct Cursor<'t> {
    source: &'t Source<'t>,
    node: &'t Node,
    /// Its key, if it is a field.
    key: Option<&'t Node>,
    path: String,
    /// Messages must not show this value and those below it, because they reach the log, the status page and Events.
    is_secret: bool,
}

impl<'t> Cursor<'t> {
    /// The whole text.
    pub(super) fn root(source: &'t Source<'t>, node: &'t Node) -> Self {
        Self {
            source,
            node,
            key: None,
            path: String::new(),
            is_secret: false,
        }
    }

    /// A value below this one.
    fn below(&self, key: Option<&'t Node>, node: &'t Node, path: String) -> Self {
        Self {
            node,
            key,
            path,
            ..*self
        }
    }

    /// The same value, which no message shows.
    pub(crate) fn secret(&self) -> Self {
        Self {
            is_secret: true,
            ..self.clone()
        }
    }

    /// The problem that the field `name` is not there.
    pub(super) fn report_missing(&self, name: &str, message: &str) {
        self.report_at(Some(self.node), &self.path_of(name), message);
    }

    /// A problem with the value.
    pub(crate) fn report(&self, message: impl AsRef<str>) {
        self.report_at(Some(self.node), &self.path, message.as_ref());
    }

    /// A problem with the field, and not with its value.
    pub(crate) fn report_key(&self, message: impl AsRef<str>) {
        self.report_at(self.key.or(Some(self.node)), &self.path, message.as_ref());
    }

    /// A problem with the text as a whole.
    pub(crate) fn report_whole(&self, message: &str) {
        self.report_at(None, "", message);
    }

    fn report_at(&self, node: Option<&Node>, path: &str, message: &str) {
        let separator = if path.is_empty() { "" } else { ": " };
        self.source.report(Problem {
            place: node.map(|node| (node.defined.line(), node.defined.column())),
            message: format!("{path}{separator}{message}"),
        });
    }

    /// A warning about the field.
    pub(crate) fn warn_key(&self, message: impl AsRef<str>) {
        self.source.warn(Problem {
            place: Some(self.place()),
            message: format!("{}: {}", self.path, message.as_ref()),
        });
    }

    /// Where the field's name, or the list's item, stands.
    pub(crate) fn place(&self) -> (u64, u64) {
        let at = self.key.unwrap_or(self.node).defined;
        (at.line(), at.column())
    }

    /// The place of `other`, in words for a message about this value: `in line 3`, or `at FILE:3:5` if it is in another
    /// text.
    pub(crate) fn whereabouts(&self, other: &Self) -> String {
        let (line, column) = other.place();
        match other.source.name {
            Some(name) if !std::ptr::eq(self.source, other.source) => {
                format!("at {name}:{line}:{column}")
            }
            _ => format!("in line {line}"),
        }
    }

    /// Reports that the value is also the one of `first`.
    pub(crate) fn report_repeated(&self, first: &Self) {
        let first = self.whereabouts(first);
        self.report(format!("appears twice; the first is {first}"));
    }

    /// The line of [`Cursor::place`].
    pub(crate) fn line(&self) -> u64 {
        self.place().0
    }

    pub(crate) fn value(&self) -> &'t Value {
        &self.node.value
    }

    /// Its name, if it is a field.
    fn name(&self) -> Option<&'t str> {
        match &self.key?.value {
            Value::String(name) => Some(name),
            _ => None,
        }
    }

    pub(crate) fn is_null(&self) -> bool {
        matches!(self.node.value, Value::Null)
    }

    /// The field `name`, if this is a mapping with it.
    pub(crate) fn get(&self, name: &str) -> Option<Self> {
        let Value::Map(pairs) = self.value() else {
            return None;
        };
        let is_it = |key: &Node| matches!(&key.value, Value::String(text) if text == name);
        let (key, node) = pairs.iter().find(|(key, _)| is_it(key))?;
        Some(self.below(Some(key), node, self.path_of(name)))
    }

    /// Whether this is the string `text`.
    pub(crate) fn is(&self, text: &str) -> bool {
        matches!(self.value(), Value::String(own) if own == text)
    }

    /// Reports that the value is not `expected`, and what it is.
    pub(crate) fn mismatch<T>(&self, expected: &str) -> Option<T> {
        self.report(format!("must be {expected}{}", self.contrast()));
        None
    }

    /// The end of a message: what stands here instead.
    fn contrast(&self) -> String {
        match self.value() {
            Value::Null => ", but has no value".into(),
            Value::List(_) => ", not a list".into(),
            Value::Map(_) => ", not a mapping".into(),
            _ if self.is_secret => String::new(),
            Value::String(text) => format!(", not the string {}", quoted(text)),
            _ => format!(", not {}", excerpt(self.spelling().unwrap_or_default())),
        }
    }

    /// The text of a scalar for advice, unless it is secret.
    fn shown(&self) -> Option<&'t str> {
        match self.value() {
            _ if self.is_secret => None,
            Value::String(text) => Some(text),
            _ => self.spelling(),
        }
    }

    /// A scalar as the text spells it: `1.10` stays `1.10`.
    pub(crate) fn spelling(&self) -> Option<&'t str> {
        let span = self.node.defined.span();
        let start = usize::try_from(span.byte_offset()?).ok()?;
        let length = usize::try_from(span.byte_len()?).ok()?;
        self.source.text.get(start..start.checked_add(length)?)
    }

    pub(crate) fn string(&self) -> Option<&'t str> {
        self.string_of("")
    }

    /// `subject` is what a message begins with.
    fn string_of(&self, subject: &str) -> Option<&'t str> {
        match self.value() {
            Value::String(text) => return Some(text),
            Value::Bool(_) | Value::Number(_) | Value::NotFinite if self.is_secret => {
                self.report(format!("{subject}must be a string; quote it"));
            }
            Value::Bool(_) | Value::Number(_) | Value::NotFinite => {
                let spelling = quoted(self.spelling().unwrap_or_default());
                self.report(format!("{subject}must be a string; quote it: {spelling}"));
            }
            _ => self.report(format!("{subject}must be a string{}", self.contrast())),
        }
        None
    }

    /// A string that `parse` accepts; its error is a message such as `must be …`.
    pub(crate) fn parsed<T>(&self, parse: impl FnOnce(&str) -> Result<T, String>) -> Option<T> {
        parse(self.string()?)
            .map_err(|message| self.report(message))
            .ok()
    }

    /// A string of the given form.
    pub(crate) fn text(&self, syntax: &Syntax) -> Option<String> {
        self.parsed(|text| match syntax.parse(text) {
            Err(_) if self.is_secret => Err(format!("must be {}", syntax.expected)),
            parsed => parsed,
        })
    }

    pub(crate) fn absolute_path(&self) -> Option<PathBuf> {
        self.text(&ABSOLUTE_PATH).map(PathBuf::from)
    }

    /// One of some words, each with its meaning.
    pub(crate) fn word<T: Copy>(&self, words: &[(&str, T)]) -> Option<T> {
        let not_one = |text: &str| {
            let words: Vec<_> = words.iter().map(|(word, _)| *word).collect();
            let choice = if words.len() > 1 { "one of " } else { "" };
            format!("must be {choice}{}, not {text}", words.join(", "))
        };
        // YAML reads False as a boolean, in any case.
        if matches!(self.value(), Value::Bool(_) | Value::Number(_)) {
            let text = self.spelling().unwrap_or_default();
            let meant = words
                .iter()
                .find(|(word, _)| word.eq_ignore_ascii_case(text));
            self.report(match meant {
                Some((word, _)) => format!("must be a string; write \"{word}\""),
                None => not_one(&excerpt(text)),
            });
            return None;
        }
        self.parsed(|text| {
            let found = words.iter().find(|(word, _)| *word == text);
            let meaning = found.map(|(_, meaning)| *meaning);
            meaning.ok_or_else(|| not_one(&quoted(text)))
        })
    }

    pub(crate) fn boolean(&self) -> Option<bool> {
        match self.value() {
            Value::Bool(value) => Some(*value),
            _ => self.mismatch("true or false"),
        }
    }

    /// What to write instead of a value that is not a mapping, which must be `what`.
    pub(super) fn advice(&self, what: &str) -> String {
        advice::for_mapping(what, self.value(), self.shown())
    }

    /// The items, if this is a list.
    pub(crate) fn items(&self) -> Option<Vec<Self>> {
        let Value::List(nodes) = self.value() else {
            return None;
        };
        let items = nodes.iter().enumerate();
        let items = items.map(|(index, node)| {
            let path = format!("{}[{index}]", self.path);
            self.below(None, node, path)
        });
        Some(items.collect())
    }

    /// The items of a list that `read` accepts.
    pub(crate) fn list<T>(&self, read: impl FnMut(&Self) -> Option<T>) -> Option<Vec<T>> {
        let Some(items) = self.items() else {
            let advice = advice::for_list(self.name(), self.value(), self.shown());
            self.report(format!("must be a list{}{advice}", self.contrast()));
            return None;
        };
        Some(items.iter().filter_map(read).collect())
    }

    pub(crate) fn is_empty_list(&self) -> bool {
        matches!(self.value(), Value::List(nodes) if nodes.is_empty())
    }

    /// Like [`Cursor::list`], but the list must have an item.
    pub(crate) fn filled_list<T>(&self, read: impl FnMut(&Self) -> Option<T>) -> Option<Vec<T>> {
        if self.is_empty_list() {
            self.report("must not be an empty list");
            return None;
        }
        self.list(read)
    }

    /// The entries of a mapping whose keys are strings and differ. `advice` is the end of the message for another value.
    pub(crate) fn entries(&self, advice: &str) -> Option<Vec<(&'t str, Self)>> {
        let Value::Map(pairs) = self.value() else {
            self.report(format!("must be a mapping{}{advice}", self.contrast()));
            return None;
        };
        let mut lines = HashMap::new();
        let mut entries = Vec::new();
        for (key, node) in pairs {
            let at_key = self.below(None, key, self.path.clone());
            let Some(name) = at_key.string_of("a key ") else {
                continue;
            };
            let entry = self.below(Some(key), node, self.path_of(name));
            if let Some(first) = lines.get(name) {
                entry.report_key(format!("appears twice; the first is in line {first}"));
            } else {
                lines.insert(name, entry.line());
                entries.push((name, entry));
            }
        }
        Some(entries)
    }

    /// The path of a field, in brackets if its name would be ambiguous or is long.
    fn path_of(&self, name: &str) -> String {
        let path = &self.path;
        let is_plain =
            (1..=63).contains(&name.len()) && name.chars().all(|c| c.is_ascii_alphanumeric());
        match (is_plain, self.is_secret) {
            (true, _) if path.is_empty() => name.to_owned(),
            (true, _) => format!("{path}.{name}"),
            (false, false) => format!("{path}[{}]", quoted(name)),
            // No field has such a name: it may be a value in the wrong place.
            (false, true) => format!("{path}[…]"),
        }
    }
}
