//! Reads a value of the tree, and knows the path of fields that leads there.

use std::cell::RefCell;
use std::collections::HashMap;
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::time::Duration;

use super::problem::{Problem, Problems};
use super::tree::{self, Node, Value};
use crate::syntax::{ABSOLUTE_PATH, Syntax};
use crate::text::{excerpt, quoted};

/// Reads a text with `read`.
pub(crate) fn document<T>(
    text: &str,
    read: impl FnOnce(&Cursor<'_>) -> Option<T>,
) -> Result<T, Problems> {
    document_with_warnings(text, read).map(|(value, _)| value)
}

/// The same, with what is valid and worth a warning.
pub(crate) fn document_with_warnings<T>(
    text: &str,
    read: impl FnOnce(&Cursor<'_>) -> Option<T>,
) -> Result<(T, Problems), Problems> {
    let node = tree::read(text).map_err(|problem| Problems::new(vec![problem]))?;
    let source = Source {
        text,
        problems: RefCell::default(),
        warnings: RefCell::default(),
    };
    let value = read(&Cursor {
        source: &source,
        node: &node,
        key: None,
        path: String::new(),
        is_secret: false,
    });
    let problems = source.problems.take();
    match value {
        Some(value) if problems.is_empty() => Ok((value, Problems::new(source.warnings.take()))),
        _ => Err(Problems::new(problems)),
    }
}

/// What all cursors into one text share.
struct Source<'t> {
    text: &'t str,
    problems: RefCell<Vec<Problem>>,
    warnings: RefCell<Vec<Problem>>,
}

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
        self.source.problems.borrow_mut().push(Problem {
            place: node.map(|node| (node.defined.line(), node.defined.column())),
            message: format!("{path}{separator}{message}"),
        });
    }

    /// A warning about the field.
    pub(crate) fn warn_key(&self, message: impl AsRef<str>) {
        self.source.warnings.borrow_mut().push(Problem {
            place: Some(self.place()),
            message: format!("warning: {}: {}", self.path, message.as_ref()),
        });
    }

    /// Where the field's name, or the list's item, stands.
    pub(crate) fn place(&self) -> (u64, u64) {
        let at = self.key.unwrap_or(self.node).defined;
        (at.line(), at.column())
    }

    /// The line of [`Cursor::place`].
    pub(crate) fn line(&self) -> u64 {
        self.place().0
    }

    pub(crate) fn value(&self) -> &'t Value {
        &self.node.value
    }

    pub(crate) fn is_null(&self) -> bool {
        matches!(self.node.value, Value::Null)
    }

    /// Whether this is a mapping with the field `name`.
    pub(crate) fn has(&self, name: &str) -> bool {
        let is_it = |key: &Node| matches!(&key.value, Value::String(text) if text == name);
        matches!(self.value(), Value::Map(pairs) if pairs.iter().any(|(key, _)| is_it(key)))
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

    /// A scalar as the text spells it: `1.10` stays `1.10`.
    fn spelling(&self) -> Option<&'t str> {
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
            Value::Bool(_) | Value::Number(_) if self.is_secret => {
                self.report(format!("{subject}must be a string; quote it"));
            }
            Value::Bool(_) | Value::Number(_) => {
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
        self.parsed(|text| {
            let found = words.iter().find(|(word, _)| *word == text);
            found.map(|(_, meaning)| *meaning).ok_or_else(|| {
                let words: Vec<_> = words.iter().map(|(word, _)| *word).collect();
                format!("must be one of {}, not {}", words.join(", "), quoted(text))
            })
        })
    }

    pub(crate) fn boolean(&self) -> Option<bool> {
        match self.value() {
            Value::Bool(value) => Some(*value),
            _ => self.mismatch("true or false"),
        }
    }

    pub(crate) fn whole_number(&self, range: &RangeInclusive<u32>) -> Option<u32> {
        let bounds = format!("between {} and {}", range.start(), range.end());
        match self.value() {
            Value::Number(number) if !number.is_f64() => number
                .as_u64()
                .and_then(|number| u32::try_from(number).ok())
                .filter(|number| range.contains(number))
                .or_else(|| self.mismatch(&bounds)),
            _ => self.mismatch(&format!("a whole number {bounds}")),
        }
    }

    /// Seconds, with or without a fraction.
    pub(crate) fn seconds(&self, range: &RangeInclusive<f64>) -> Option<Duration> {
        let bounds = format!("between {} and {} seconds", range.start(), range.end());
        match self.value() {
            Value::Number(number) => number
                .as_f64()
                .filter(|seconds| range.contains(seconds))
                .and_then(|seconds| Duration::try_from_secs_f64(seconds).ok())
                .or_else(|| self.mismatch(&bounds)),
            _ => self.mismatch(&format!("a number {bounds}")),
        }
    }

    /// The items of a list that `read` accepts.
    pub(crate) fn list<T>(&self, mut read: impl FnMut(&Self) -> Option<T>) -> Option<Vec<T>> {
        let Value::List(nodes) = self.value() else {
            return self.mismatch("a list");
        };
        let items = nodes.iter().enumerate().filter_map(|(index, node)| {
            read(&self.below(None, node, format!("{}[{index}]", self.path)))
        });
        Some(items.collect())
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

    /// The entries of a mapping whose keys are strings and differ.
    pub(crate) fn entries(&self) -> Option<Vec<(&'t str, Self)>> {
        let Value::Map(pairs) = self.value() else {
            return self.mismatch("a mapping");
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
