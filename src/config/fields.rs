//! The fields of a mapping, read by name.

use super::cursor::Cursor;

impl<'t> Cursor<'t> {
    /// Reads `what` from the fields of a mapping. Every field that `read` does not ask for is a problem.
    pub(super) fn mapping<T>(
        &self,
        what: &str,
        read: impl FnOnce(&mut Fields<'_, 't>) -> Option<T>,
    ) -> Option<T> {
        let mut fields = Fields {
            of: self,
            rest: self.entries()?,
            known: Vec::new(),
        };
        let result = read(&mut fields);
        let known = fields.known.join(", ");
        for (_, field) in fields.rest {
            field.report_key(format!("{what} has no such field; it has {known}"));
        }
        result
    }
}

/// The fields of a mapping that have not been read yet.
pub(super) struct Fields<'c, 't> {
    of: &'c Cursor<'t>,
    rest: Vec<(&'t str, Cursor<'t>)>,
    known: Vec<&'static str>,
}

impl<'t> Fields<'_, 't> {
    pub(super) fn optional(&mut self, name: &'static str) -> Option<Cursor<'t>> {
        self.known.push(name);
        let index = self.rest.iter().position(|(field, _)| *field == name)?;
        Some(self.rest.remove(index).1)
    }

    pub(super) fn required(&mut self, name: &'static str) -> Option<Cursor<'t>> {
        self.required_or(name, "is missing")
    }

    /// Like [`Fields::required`], with a message of its own.
    pub(super) fn required_or(&mut self, name: &'static str, message: &str) -> Option<Cursor<'t>> {
        let field = self.optional(name);
        if field.is_none() {
            self.of.report_missing(name, message);
        }
        field
    }

    /// An optional boolean that is false by default.
    pub(super) fn flag(&mut self, name: &'static str) -> bool {
        let field = self.optional(name);
        field.and_then(|field| field.boolean()).unwrap_or(false)
    }

    /// The field `name` has a meaning elsewhere: where it stands here, `message` says why it must not.
    pub(super) fn refuse(&mut self, name: &str, message: &str) {
        if let Some(index) = self.rest.iter().position(|(field, _)| *field == name) {
            self.rest.remove(index).1.report_key(message);
        }
    }

    /// A problem with the mapping.
    pub(super) fn report(&self, message: impl Into<String>) {
        self.of.report(message);
    }

    /// The fields asked for so far.
    pub(super) fn known(&self) -> String {
        self.known.join(", ")
    }

    /// Says nothing about the fields that were not read.
    pub(super) fn skip_rest(&mut self) {
        self.rest.clear();
    }
}
