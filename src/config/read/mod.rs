//! Reads YAML strictly: reports every problem of a text, each with its place.
//!
//! `tree` is YAML with places, a [`Cursor`] reads a value of it, and [`Fields`] are those of a mapping. A value that is
//! wrong is reported and read as `None`. A field that is required and missing is reported too, and its type's default
//! takes its place, so that the other fields are read for their problems as well. A mapping with any problem in it is
//! `None`. `advice` says what to write instead of common mistakes.

mod advice;
mod cursor;
mod document;
mod fields;
mod numbers;
mod problem;
mod source;
mod tree;

pub(super) use cursor::Cursor;
pub(super) use document::documents;
pub(super) use fields::{Fields, Names};
pub use problem::Problems;
pub(super) use source::Source;
pub(super) use tree::Value;
