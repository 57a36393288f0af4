//! Labels and the values that they must have.

use std::collections::BTreeMap;

use schemars::Schema;

use super::read::{Cursor, Value};
use crate::syntax::{LABEL_VALUE, QUALIFIED_NAME};

pub(super) fn read(cursor: &Cursor<'_>) -> Option<BTreeMap<String, String>> {
    let entries = cursor.entries("; write each label as KEY: VALUE")?;
    let labels = entries.into_iter().map(|(key, value)| {
        if let Value::List(_) | Value::Map(_) = value.value() {
            // A selector of another object may have matchLabels or matchExpressions here.
            value.report("must be the value of a label: write each label directly as KEY: VALUE");
            return None;
        }
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
