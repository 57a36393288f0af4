//! Reading the configuration from a file.

use std::path::Path;

use super::problem::{LoadError, Problem, Problems};
use super::{Configuration, parse};
use crate::text_file;

/// Reads a configuration file. The error names the file in each of its lines.
pub fn load(path: &Path) -> Result<Configuration, LoadError> {
    text_file::read(path)
        .map_err(|message| Problems::from(Problem::of_the_whole(message)))
        .and_then(|text| parse(&text))
        .map_err(|problems| LoadError::new(path, problems))
}
