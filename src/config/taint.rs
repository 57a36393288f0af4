//! Reads a taint.

use super::read::Cursor;
use crate::syntax::LABEL_VALUE;
use crate::taint::{TaintMatcher, effects, parse_effect, parse_key};

pub(super) fn read(cursor: &Cursor<'_>) -> Option<TaintMatcher> {
    cursor.mapping("a taint", |fields| {
        Some(TaintMatcher {
            key: fields.required("key", |key| key.parsed(parse_key)),
            effect: fields.optional("effect", |effect| {
                if effect.is_null() {
                    return effect.mismatch(&effects());
                }
                effect.parsed(parse_effect)
            }),
            value: fields.optional("value", |value| {
                if value.is_null() {
                    value.report(
                        "has no value: write \"\" to match only the empty value, or leave the field out to match any value",
                    );
                    return None;
                }
                value.text(&LABEL_VALUE)
            }),
        })
    })
}
