//! Reading the configuration from a file.

use std::path::Path;

use super::problem::{LoadError, Problem};
use super::{Configuration, parse};
use crate::text::file;

/// Reads a configuration file. The error names the file in each of its lines.
pub fn load(path: &Path) -> Result<Configuration, LoadError> {
    parse_file(path, &read(path)?)
}

/// Reads the text of a configuration file.
pub fn read(path: &Path) -> Result<String, LoadError> {
    file::read(path).map_err(|message| LoadError::new(path, Problem::of_the_whole(message).into()))
}

/// [`parse`] with errors that name the file in each line.
pub fn parse_file(path: &Path, text: &str) -> Result<Configuration, LoadError> {
    parse(text).map_err(|problems| LoadError::new(path, problems))
}
