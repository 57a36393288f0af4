//! Labels and the values that they must have.

use std::collections::BTreeMap;

use schemars::Schema;

use super::read::Cursor;
use crate::syntax::{LABEL_VALUE, QUALIFIED_NAME};

pub(super) fn read(cursor: &Cursor<'_>) -> Option<BTreeMap<String, String>> {
    let labels = cursor.entries()?.into_iter().map(|(key, value)| {
        if let Err(message) = QUALIFIED_NAME.check(key) {
            value.report_key(format!("its key {message}"));
        }
        Some((key.to_owned(), value.text(&LABEL_VALUE)?))
    });
    // Reads all labels, so that all their problems are reported.
    let labels: Vec<_> = labels.collect();
    labels.into_iter().collect()
}

/// For the schema.
pub(super) fn describe(labels: &mut Schema) {
    labels.insert("propertyNames".into(), QUALIFIED_NAME.schema().into());
    labels.insert("additionalProperties".into(), LABEL_VALUE.schema().into());
}
