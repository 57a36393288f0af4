//! Reading values out of the tree, one field at a time, while problems are collected.
//!
//! A reader returns `None` only after it has reported why, so a caller reads all of its fields first and gives up
//! afterwards: that is how all problems are found at once.

use std::cell::RefCell;
use std::ops::RangeInclusive;
use std::time::Duration;

use super::duration::{self, DURATION};
use super::problem::Problem;
use super::tree::{Node, Value};
use super::unique::Unique;
use crate::syntax::{Syntax, shortened, shown};

/// What all cursors into one text share.
pub(super) struct Context<'t> {
    source: &'t str,
    problems: RefCell<Vec<Problem>>,
}

impl<'t> Context<'t> {
    pub(super) fn new(source: &'t str) -> Self {
        Self {
            source,
            problems: RefCell::default(),
        }
    }

    pub(super) fn into_problems(self) -> Vec<Problem> {
        self.problems.into_inner()
    }

    fn report(&self, node: &Node, path: &str, message: String) {
        let place = Some((node.defined.line(), node.defined.column()));
        let problem = Problem::new(place, path, message);
        self.problems.borrow_mut().push(problem);
    }

    /// A scalar as the text spells it: `1.10` stays `1.10`.
    fn spelling(&self, node: &Node) -> Option<&'t str> {
        let span = node.defined.span();
        let start = usize::try_from(span.byte_offset()?).ok()?;
        let length = usize::try_from(span.byte_len()?).ok()?;
        self.source.get(start..start.checked_add(length)?)
    }

    /// The end of a message that begins with what should stand at `node`: what stands there.
    fn contrast(&self, node: &Node, is_secret: bool) -> String {
        match &node.value {
            Value::Null => ", but has no value".into(),
            Value::Bool(_) | Value::Number(_) | Value::String(_) if is_secret => String::new(),
            Value::Bool(_) | Value::Number(_) => {
                let spelling = self.spelling(node).unwrap_or_default();
                format!(", not {}", shortened(spelling))
            }
            Value::String(text) => format!(", not the string {}", shown(text)),
            Value::List(_) => ", not a list".into(),
            Value::Map(_) => ", not a mapping".into(),
        }
    }

    /// `subject` is what a message begins with.
    fn string(
        &self,
        node: &'t Node,
        path: &str,
        subject: &str,
        is_secret: bool,
    ) -> Option<&'t str> {
        if let Value::String(text) = &node.value {
            return Some(text);
        }
        let message = if matches!(node.value, Value::Bool(_) | Value::Number(_)) {
            let spelling = self.spelling(node).filter(|_| !is_secret);
            let quoted = spelling.map(|spelling| format!(": {}", shown(spelling)));
            let quoted = quoted.unwrap_or_default();
            format!("{subject}must be a string; quote it{quoted}")
        } else {
            let contrast = self.contrast(node, is_secret);
            format!("{subject}must be a string{contrast}")
        };
        self.report(node, path, message);
        None
    }
}

/// A value in the tree, with the path of fields that leads there.
#[derive(Clone)]
pub(super) struct Cursor<'t> {
    context: &'t Context<'t>,
    node: &'t Node,
    /// Its key, if it is a field.
    key: Option<&'t Node>,
    path: String,
    /// Whether no message may show what stands here and below: the log, the status page and Events pass it on.
    is_secret: bool,
}

impl<'t> Cursor<'t> {
    pub(super) fn root(context: &'t Context<'t>, node: &'t Node) -> Self {
        Self {
            context,
            node,
            key: None,
            path: String::new(),
            is_secret: false,
        }
    }

    /// The same, and no message shows what stands there.
    pub(super) fn secret(self) -> Self {
        Self {
            is_secret: true,
            ..self
        }
    }

    /// The problem that the field `name` is not there.
    pub(super) fn report_missing(&self, name: &str, message: &str) {
        let path = self.extended(name);
        self.context.report(self.node, &path, message.to_owned());
    }

    /// A problem with the value.
    pub(super) fn report(&self, message: impl Into<String>) {
        self.context.report(self.node, &self.path, message.into());
    }

    /// A problem with the fact that the field is there.
    pub(super) fn report_key(&self, message: impl Into<String>) {
        let node = self.key.unwrap_or(self.node);
        self.context.report(node, &self.path, message.into());
    }

    /// The line of the field's name, or of a list's item.
    pub(super) fn line(&self) -> u64 {
        self.place().0
    }

    /// Where the field's name, or the list's item, stands.
    pub(super) fn place(&self) -> (u64, u64) {
        let at = self.key.unwrap_or(self.node).defined;
        (at.line(), at.column())
    }

    pub(super) fn value(&self) -> &'t Value {
        &self.node.value
    }

    pub(super) fn is_null(&self) -> bool {
        matches!(self.node.value, Value::Null)
    }

    /// Reports that the value is not `expected`, and what it is.
    pub(super) fn mismatch<T>(&self, expected: &str) -> Option<T> {
        let contrast = self.context.contrast(self.node, self.is_secret);
        self.report(format!("must be {expected}{contrast}"));
        None
    }

    pub(super) fn string(&self) -> Option<&'t str> {
        let is_secret = self.is_secret;
        self.context.string(self.node, &self.path, "", is_secret)
    }

    /// A string that `parse` accepts; its error is a message such as `must be …`.
    pub(super) fn parsed<T>(&self, parse: impl FnOnce(&str) -> Result<T, String>) -> Option<T> {
        parse(self.string()?)
            .map_err(|message| self.report(message))
            .ok()
    }

    /// A string of the given form.
    pub(super) fn text(&self, syntax: &Syntax) -> Option<String> {
        self.parsed(|text| match syntax.check(text) {
            Ok(()) => Ok(text.to_owned()),
            Err(_) if self.is_secret => Err(format!("must be {}", syntax.expected)),
            Err(message) => Err(message),
        })
    }

    pub(super) fn boolean(&self) -> Option<bool> {
        match self.node.value {
            Value::Bool(value) => Some(value),
            _ => self.mismatch("true or false"),
        }
    }

    pub(super) fn whole_number(&self, range: &RangeInclusive<u32>) -> Option<u32> {
        let bounds = format!("between {} and {}", range.start(), range.end());
        match &self.node.value {
            Value::Number(number) if !number.is_f64() => number
                .as_u64()
                .and_then(|number| u32::try_from(number).ok())
                .filter(|number| range.contains(number))
                .or_else(|| self.mismatch(&bounds)),
            _ => self.mismatch(&format!("a whole number {bounds}")),
        }
    }

    /// Seconds, with or without a fraction.
    pub(super) fn seconds(&self, range: &RangeInclusive<f64>) -> Option<Duration> {
        let bounds = format!("between {} and {} seconds", range.start(), range.end());
        match &self.node.value {
            Value::Number(number) => number
                .as_f64()
                .filter(|seconds| range.contains(seconds))
                .and_then(|seconds| Duration::try_from_secs_f64(seconds).ok())
                .or_else(|| self.mismatch(&bounds)),
            _ => self.mismatch(&format!("a number {bounds}")),
        }
    }

    /// A duration such as `90s`.
    pub(super) fn duration(&self) -> Option<Duration> {
        let duration = match self.value() {
            Value::String(text) => duration::parse(text),
            _ => None,
        };
        duration.or_else(|| self.mismatch(DURATION.expected))
    }

    /// The items of a list that `read` accepts.
    pub(super) fn list<T>(&self, mut read: impl FnMut(&Self) -> Option<T>) -> Option<Vec<T>> {
        let Value::List(nodes) = &self.node.value else {
            return self.mismatch("a list");
        };
        let items = nodes.iter().enumerate().filter_map(|(index, node)| {
            read(&Self {
                context: self.context,
                node,
                key: None,
                path: format!("{}[{index}]", self.path),
                is_secret: self.is_secret,
            })
        });
        Some(items.collect())
    }

    /// Like [`Cursor::list`], but the list must have an item.
    pub(super) fn filled_list<T>(&self, read: impl FnMut(&Self) -> Option<T>) -> Option<Vec<T>> {
        if matches!(&self.node.value, Value::List(nodes) if nodes.is_empty()) {
            self.report("must not be an empty list");
            return None;
        }
        self.list(read)
    }

    /// The entries of a mapping whose keys are strings and differ, each value with its key.
    pub(super) fn entries(&self) -> Option<Vec<(&'t str, Self)>> {
        let Value::Map(pairs) = &self.node.value else {
            return self.mismatch("a mapping");
        };
        let mut names = Unique::default();
        let mut entries = Vec::new();
        for (key, node) in pairs {
            let Some(name) = self
                .context
                .string(key, &self.path, "a key ", self.is_secret)
            else {
                continue;
            };
            let entry = Self {
                context: self.context,
                node,
                key: Some(key),
                path: self.extended(name),
                is_secret: self.is_secret,
            };
            match names.admit(name, entry.line()) {
                Ok(()) => entries.push((name, entry)),
                Err(first) => {
                    entry.report_key(format!("appears twice; the first is in line {first}"));
                }
            }
        }
        Some(entries)
    }

    /// The path with one more field, in brackets if the name would be ambiguous or is long.
    fn extended(&self, name: &str) -> String {
        let path = &self.path;
        let is_plain =
            (1..=63).contains(&name.len()) && name.chars().all(|c| c.is_ascii_alphanumeric());
        match (is_plain, self.is_secret) {
            (true, _) if path.is_empty() => name.to_owned(),
            (true, _) => format!("{path}.{name}"),
            (false, false) => format!("{path}[{}]", shown(name)),
            // No field has such a name: it may be a value in the wrong place.
            (false, true) => format!("{path}[…]"),
        }
    }

    /// Whether this is a mapping with the field `name`.
    pub(super) fn has(&self, name: &str) -> bool {
        let is_it = |key: &Node| matches!(&key.value, Value::String(text) if text == name);
        matches!(&self.node.value, Value::Map(pairs) if pairs.iter().any(|(key, _)| is_it(key)))
    }
}
