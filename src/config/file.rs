//! Reading the configuration from a file.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use super::problem::{LoadError, Problem, Problems};
use super::{Configuration, parse};

/// In bytes; a `ConfigMap` cannot be larger either.
const MAX_SIZE: u64 = 1024 * 1024;

/// Reads a configuration file. The error names the file in each of its lines.
pub fn load(path: &Path) -> Result<Configuration, LoadError> {
    read(path)
        .map_err(Problems::from)
        .and_then(|text| parse(&text))
        .map_err(|problems| LoadError::new(path, problems))
}

fn read(path: &Path) -> Result<String, Problem> {
    let bytes = read_bytes(path)
        .map_err(|error| Problem::of_the_whole(format!("cannot be read: {error}")))?;
    if bytes.len() as u64 > MAX_SIZE {
        return Err(Problem::of_the_whole("is larger than 1 MiB"));
    }
    if let Some(index) = bytes.iter().position(|byte| *byte == 0) {
        let message = format!("is binary, not text: byte {index} is NUL");
        return Err(Problem::of_the_whole(message));
    }
    String::from_utf8(bytes).map_err(|error| {
        let valid = error.utf8_error().valid_up_to();
        Problem::of_the_whole(format!("is not UTF-8 text: byte {valid} is invalid"))
    })
}

/// At most one byte more than allowed, whatever the file claims to be.
fn read_bytes(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    File::open(path)?
        .take(MAX_SIZE + 1)
        .read_to_end(&mut bytes)?;
    Ok(bytes)
}
