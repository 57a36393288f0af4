//! The fields of a mapping, read by name.

use std::collections::HashMap;

use super::advice;
use super::cursor::Cursor;
use crate::syntax::DNS_LABEL;

impl<'t> Cursor<'t> {
    /// Reads `what` from the fields of a mapping. Every field that `read` does not ask for is a problem, but the value
    /// is compared with others all the same.
    pub(crate) fn mapping<T>(
        &self,
        what: &str,
        read: impl FnOnce(&mut Fields<'_, 't>) -> Option<T>,
    ) -> Option<T> {
        let mut fields = Fields {
            of: self,
            rest: self.entries(&self.advice(what))?,
            known: Vec::new(),
            lacks_value: false,
        };
        let value = read(&mut fields);
        for (name, field) in fields.rest {
            let advice = advice::for_field(what, name, &fields.known);
            field.report_key(format!("{what} has no such field; {advice}"));
        }
        value.filter(|_| !fields.lacks_value)
    }
}

/// The fields of a mapping that have not been read yet.
pub(crate) struct Fields<'c, 't> {
    of: &'c Cursor<'t>,
    rest: Vec<(&'t str, Cursor<'t>)>,
    known: Vec<&'static str>,
    /// Whether a field without a default could not be read.
    lacks_value: bool,
}

impl<'t> Fields<'_, 't> {
    pub(crate) fn find(&mut self, name: &'static str) -> Option<Cursor<'t>> {
        self.known.push(name);
        self.take(name)
    }

    /// Like [`Fields::find`], with a `message` if the field is missing.
    pub(crate) fn demand(&mut self, name: &'static str, message: &str) -> Option<Cursor<'t>> {
        let field = self.find(name);
        if field.is_none() {
            self.report_missing(name, message);
        }
        field
    }

    /// A problem with the field `name`, which is not there.
    pub(crate) fn report_missing(&self, name: &str, message: &str) {
        self.of.report_missing(name, message);
    }

    pub(crate) fn required<T: Default>(
        &mut self,
        name: &'static str,
        read: impl FnOnce(&Cursor<'t>) -> Option<T>,
    ) -> T {
        let field = self.demand(name, "is missing");
        let value = field.and_then(|field| read(&field));
        self.lacks_value |= value.is_none();
        value.unwrap_or_default()
    }

    /// `None` if the field is left out.
    pub(crate) fn optional<T>(
        &mut self,
        name: &'static str,
        read: impl FnOnce(&Cursor<'t>) -> Option<T>,
    ) -> Option<T> {
        let value = read(&self.find(name)?);
        self.lacks_value |= value.is_none();
        value
    }

    /// The `default` if the field is left out or wrong.
    pub(crate) fn or<T>(
        &mut self,
        name: &'static str,
        default: T,
        read: impl FnOnce(&Cursor<'t>) -> Option<T>,
    ) -> T {
        let field = self.find(name);
        field.and_then(|field| read(&field)).unwrap_or(default)
    }

    /// A boolean that is false by default.
    pub(crate) fn flag(&mut self, name: &'static str) -> bool {
        self.or(name, false, Cursor::boolean)
    }

    /// Reads the field `name` and adds it to `names`, in which it must be new.
    pub(crate) fn name(&mut self, names: &mut Names<'t>) -> String {
        self.required("name", |field| {
            let name = field.text(&DNS_LABEL)?;
            if let Some(first) = names.0.get(&name) {
                let first = field.whereabouts(first);
                field.report(format!("must be unique, but is also the name {first}"));
            } else {
                names.0.insert(name.clone(), field.clone());
            }
            Some(name)
        })
    }

    /// Reports the field `name` if it is there. The `message` says why it must not be.
    pub(crate) fn refuse(&mut self, name: &str, message: &str) {
        if let Some(field) = self.take(name) {
            field.report_key(message);
        }
    }

    fn take(&mut self, name: &str) -> Option<Cursor<'t>> {
        let index = self.rest.iter().position(|(field, _)| *field == name)?;
        Some(self.rest.remove(index).1)
    }

    /// A problem with the mapping.
    pub(crate) fn report(&self, message: impl AsRef<str>) {
        self.of.report(message);
    }

    /// The names of the fields that were asked for.
    pub(crate) fn known(&self) -> String {
        self.known.join(", ")
    }

    /// Reports nothing about the fields that were not read.
    pub(crate) fn skip_rest(&mut self) {
        self.rest.clear();
    }
}

/// The names in a list so far, each with its place.
#[derive(Default)]
pub(crate) struct Names<'t>(HashMap<String, Cursor<'t>>);
