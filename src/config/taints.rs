//! Taints as the file names them.

use super::cursor::Cursor;
use crate::syntax::LABEL_VALUE;
use crate::taint::{Effect, TaintMatcher, effects, parse_effect, parse_key};

pub(super) fn matcher(cursor: &Cursor<'_>) -> Option<TaintMatcher> {
    cursor.mapping("a taint", |fields| {
        let key = fields.required("key");
        let effect = fields.optional("effect");
        let value = fields.optional("value");

        let key = key.and_then(|key| key.parsed(parse_key));
        let effect = effect.map(|field| effect_of(&field));
        let value = value.map(|field| value_of(&field));
        Some(TaintMatcher {
            key: key?,
            // Left out is any; wrong is not.
            value: value.map_or(Some(None), |read| read.map(Some))?,
            effect: effect.map_or(Some(None), |read| read.map(Some))?,
        })
    })
}

fn effect_of(cursor: &Cursor<'_>) -> Option<Effect> {
    if cursor.is_null() {
        return cursor.mismatch(&effects());
    }
    cursor.parsed(parse_effect)
}

fn value_of(cursor: &Cursor<'_>) -> Option<String> {
    if cursor.is_null() {
        cursor.report("has no value: write \"\" for exactly empty, or leave it out for any");
        return None;
    }
    cursor.text(&LABEL_VALUE)
}
