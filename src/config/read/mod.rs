//! Reads YAML strictly: reports every problem of a text, each with its place.
//!
//! `tree` is YAML with places, a [`Cursor`] reads a value of it, and [`Fields`] are those of a mapping. A value that is
//! wrong is reported and read as `None`. A field that is required and missing is reported too, and its type's default
//! takes its place, so that the other fields are read for their problems as well. A mapping with any problem in it is
//! `None`.

mod cursor;
mod fields;
mod problem;
mod tree;

pub(super) use cursor::{Cursor, document, document_with_warnings};
pub(super) use fields::{Fields, Names};
pub use problem::Problems;
pub(super) use tree::Value;
