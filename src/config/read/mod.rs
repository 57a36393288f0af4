//! Reads YAML strictly: reports every problem of the texts, each with its place.
//!
//! `tree` is YAML with places, a [`Cursor`] reads a value of it, and [`Fields`] are those of a mapping. A value that is
//! wrong is reported and read as `None`. A field that is required and missing is reported too, and its type's default
//! takes its place, so that the other fields are read for their problems as well. A mapping with any problem in it is
//! `None`.

mod cursor;
mod fields;
mod problem;
mod source;
mod tree;

pub(super) use cursor::Cursor;
pub(super) use fields::{Fields, Names};
pub use problem::Problems;
pub(super) use source::Source;
pub(super) use tree::Value;

/// Reads texts that belong together with `read`, which gets those whose syntax is right.
pub(super) fn documents<T>(
    sources: &[Source<'_>],
    read: impl FnOnce(&[Cursor<'_>]) -> Option<T>,
) -> Result<T, Problems> {
    let trees = tree::read_all(sources);
    let roots = sources.iter().zip(&trees);
    let roots = roots.filter_map(|(source, node)| Some(Cursor::root(source, node.as_ref()?)));
    let value = read(&roots.collect::<Vec<_>>());
    let problems: Vec<_> = sources.iter().map(Source::take_problems).collect();
    match value {
        Some(value) if problems.iter().all(|(_, of_one)| of_one.is_empty()) => Ok(value),
        _ => Err(Problems::new(problems)),
    }
}
